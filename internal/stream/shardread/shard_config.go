package shardread

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/dynamill/dynamill/internal/stream/leases"
	"github.com/dynamill/dynamill/internal/stream/streamapi"
)

// Config is what all shards that one worker reads have in common.
type Config struct {
	Streams   streamapi.Streams
	StreamARN string
	WorkerID  string
	Decoder   streamapi.Decoder
	Processor Processor
	// Open returns what applies the records of a shard, before the first of them; nil: Processor does, for all shards. It is called
	// again, with pauses, unless the error is a Stopper. Row reads a row of the lease table, consistently; the zero Lease if there is
	// none.
	Open func(ctx context.Context, c Claim) (Processor, error)
	Row  func(ctx context.Context, shard string) (leases.Lease, error)

	Logger *slog.Logger

	BatchMax           int
	PollInterval       time.Duration
	CheckpointInterval time.Duration
	StopTimeout        time.Duration
	LeaseTerm          time.Duration
	DrainPolls         int
	Drains             bool

	Turns   chan struct{} // holds one token for each batch that is being processed right now
	Buffer  *Buffer
	Applies *atomic.Int64     // batches applied: by this worker, and as far as it sees by other workers
	OnIdle  func()            // called when a shard has been empty for DrainPolls polls
	OnDone  func(records int) // called after each batch
}
