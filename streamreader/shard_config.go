package streamreader

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/dynamill/dynamill/change"
)

// shardConfig is what all shards that one worker reads have in common.
type shardConfig struct {
	Streams   Streams
	StreamARN string
	WorkerID  string
	Decoder   decoder
	Process   func(ctx context.Context, records []change.Record) (done int, err error)
	Logger    *slog.Logger

	BatchMax           int
	PollInterval       time.Duration
	CheckpointInterval time.Duration
	StopTimeout        time.Duration
	LeaseTerm          time.Duration
	DrainPolls         int
	Drains             bool

	Turns   chan struct{} // holds one token for each batch that is being processed right now
	Buffer  *buffer
	Applies *atomic.Int64     // batches applied: by this worker, and as far as it sees by other workers
	OnIdle  func()            // called when a shard has been empty for DrainPolls polls
	OnDone  func(records int) // called after each batch
}
