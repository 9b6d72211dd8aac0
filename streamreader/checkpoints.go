package streamreader

import "github.com/dynamill/dynamill/streamreader/internal/leases"

// The sentinels of a checkpoint, as the Kinesis Client Library names them.
// Every other checkpoint is the sequence number of the last record done.
const (
	TrimHorizon = leases.TrimHorizon // nothing of the shard is done
	ShardEnd    = leases.ShardEnd    // the shard is closed and everything in it is done
	Latest      = leases.Latest      // of a stream's own row only: all shards that the stream had at first have rows
)

// ErrLeaseLost says that another process has written to a lease row that this
// one holds. That ends the reading of one shard.
var ErrLeaseLost = leases.ErrLost

// ErrNamesake is an ErrLeaseLost: another process runs under this one's
// WorkerID. It ends the reader that finds it: the one that was there first, or
// the one that wakes beside its successor.
var ErrNamesake = leases.ErrNamesake

type (
	// Lease is one row of the lease table: how far one shard is done, and by whom.
	// Beside its shards each stream has a row of its own (OfStream), whose owner
	// lists the stream's shards and makes and deletes their rows.
	Lease = leases.Lease
	// Worker names the process that claims leases.
	Worker = leases.Worker
	// Checkpoints keeps the leases: NewLeaseTable makes one.
	Checkpoints = leases.Store
	// LeaseTable keeps the leases in a DynamoDB table, one row a shard.
	LeaseTable = leases.Table
	// LeaseClient is what the lease table needs of *dynamodb.Client.
	LeaseClient = leases.Client
)

// NewLeaseTable returns the leases in the table of that name. Checkpoints
// say what one state table knows, so each state table has a lease table of its
// own. Load creates the table, on demand, if it does not exist.
func NewLeaseTable(client LeaseClient, tableName string) *LeaseTable {
	return leases.NewTable(client, tableName)
}
