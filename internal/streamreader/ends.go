package streamreader

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dynamill/dynamill/internal/stream/leases"
	"github.com/dynamill/dynamill/internal/stream/streamapi"
)

// ErrStreamEnded says that the stream is disabled and was read to its end:
// whatever the table's items go through now, no record of it will come.
var ErrStreamEnded = errors.New("the stream is disabled and read to its end: changes of the table are no longer recorded")

// SkippedError says that open shards were not read, because their leases say
// SHARD_END. Drain returns it when everything else is done.
type SkippedError struct {
	Shards []string
}

func (e *SkippedError) Error() string {
	return fmt.Sprintf("the leases of open shards say SHARD_END, so their records are skipped: %s", strings.Join(e.Shards, ", "))
}

var (
	// ErrStreamNotFound says that no stream has the ARN that was given.
	ErrStreamNotFound = streamapi.ErrStreamNotFound
	// ErrLeaseLost says that another process wrote to a lease row that this one holds. It ends the reading of one shard.
	ErrLeaseLost = leases.ErrLost
	// ErrNamesake is an ErrLeaseLost: another process has this WorkerID. It ends the reader that finds it.
	ErrNamesake = leases.ErrNamesake
)

type (
	// Checkpoints keeps how far each shard is done, and which worker reads it: NewLeaseTable makes one.
	Checkpoints = leases.Store
	// Streams is what the reader needs of *dynamodbstreams.Client.
	Streams = streamapi.Streams
	// TrimmedError says that the stream no longer holds records that were not processed yet.
	TrimmedError = streamapi.TrimmedError
	// RecordError says that a stream record cannot be understood. The reader stops before it.
	RecordError = streamapi.RecordError
	// Stopper is implemented by a Processor's error that no retry can cure: Run returns it.
	Stopper = streamapi.Stopper
)

// StopsReading reports whether a Processor's error is a Stopper that stops the reading.
func StopsReading(err error) bool { return streamapi.StopsReading(err) }

// NewLeaseTable returns the leases in the table of that name: each state table has a lease table of its own.
func NewLeaseTable(client leases.Client, tableName string) Checkpoints {
	return leases.NewTable(client, tableName)
}
