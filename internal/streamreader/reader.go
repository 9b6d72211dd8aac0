package streamreader

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dynamill/dynamill/internal/pace"
	"github.com/dynamill/dynamill/internal/stream/leases"
	"github.com/dynamill/dynamill/internal/stream/shardread"
	"github.com/dynamill/dynamill/internal/stream/streamapi"
)

type (
	// Processor applies records.
	Processor = shardread.Processor
	// Claim is a shard that a worker has claimed, and has read no record of yet.
	Claim = shardread.Claim
)

// Config says what to read and how. The zero value of each field below
// Processor stands for its default.
type Config struct {
	Streams     Streams
	StreamARN   string
	Checkpoints Checkpoints
	Processor   Processor

	// OpenShard returns what applies the records of a shard that this worker has claimed, before the first of them; nil: Processor
	// does, for all shards. An error is logged, and the call made again after a pause, unless the error is a Stopper. Once it has
	// returned, the reader looks at the leases of the shard and of its parent again: if they were changed meanwhile, it gives the shard
	// up.
	OpenShard func(ctx context.Context, c Claim) (Processor, error)

	// PartitionKey and SortKey name the table's key attributes, for an endpoint
	// whose description of a stream has no key schema; AWS's has, and it counts.
	PartitionKey, SortKey string

	Logger       *slog.Logger  // default slog.Default()
	BatchMax     int           // records per Process call; default 1000, which is also the most that one page has
	PollInterval time.Duration // longest wait between two polls of a shard that is empty; default 1 s
	Concurrency  int           // Process calls at the same moment; shards beyond it take turns, batch by batch; default 16
	ListInterval time.Duration // wait between two lists of the shards while none ends; default 30 s
	// BufferMax bounds the records that all shards together hold, in bytes as DynamoDB counts them and at least 1 KiB each; decoded
	// they take up to several times that. GetRecords is called once at a time for each free MiB, the most that a page has. Shards
	// read ahead in half of it. The other half has room for a page of each shard if it is 1 MiB for each of Concurrency.
	// Default 32 MiB, at least 1 MiB.
	BufferMax int64

	// WorkerID must differ between processes that share a stream and a lease table; default the host's name and a random part.
	// A process takes its own name's former leases at once; other workers do so after LeaseTerm.
	WorkerID string
	// RunID distinguishes this process from another that is given the same WorkerID by
	// mistake; default random.
	RunID string
	// LeaseTerm is how long this worker keeps its shards while it is not heard
	// of; default 10 s, at least 1 s. Other workers read it in the rows.
	LeaseTerm time.Duration

	CheckpointInterval time.Duration // least time between two checkpoints of one shard, its end and a stop apart; default 1 s
	StopTimeout        time.Duration // how long the batches in hand may take after a stop; default 30 s
	DrainPolls         int           // polls in a row without a record after which Drain takes an open shard for empty; default 5
}

// Reader follows one stream. Make it with New.
type Reader struct {
	cfg Config

	records, moves atomic.Int64 // as Stats counts them

	mu      sync.Mutex
	running bool
	began   time.Time
	view    view
}

// New checks the configuration and returns a Reader. It makes no call.
func New(cfg Config) (*Reader, error) {
	var problems []error
	require := func(ok bool, what string) {
		if !ok {
			problems = append(problems, errors.New(what))
		}
	}
	require(cfg.Streams != nil, "Streams is missing")
	require(cfg.StreamARN != "", "StreamARN is missing")
	require(cfg.Checkpoints != nil, "Checkpoints is missing")
	require(cfg.Processor != nil, "Processor is missing")
	require(cfg.BatchMax >= 0 && cfg.Concurrency >= 0 && cfg.DrainPolls >= 0, "BatchMax, Concurrency and DrainPolls must not be negative")
	require(cfg.PollInterval >= 0 && cfg.ListInterval >= 0 && cfg.CheckpointInterval >= 0 && cfg.StopTimeout >= 0,
		"PollInterval, ListInterval, CheckpointInterval and StopTimeout must not be negative")
	require(cfg.BufferMax == 0 || cfg.BufferMax >= streamapi.PageBytesMax, "BufferMax must be at least 1 MiB, the size of one page")
	require(cfg.LeaseTerm == 0 || cfg.LeaseTerm >= leaseTermMin, "LeaseTerm must be at least 1 s")
	if len(problems) > 0 {
		return nil, fmt.Errorf("configuring the stream reader: %w", errors.Join(problems...))
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	cfg.BatchMax = cmp.Or(cfg.BatchMax, 1000)
	cfg.BufferMax = cmp.Or(cfg.BufferMax, 32*streamapi.PageBytesMax)
	cfg.PollInterval = cmp.Or(cfg.PollInterval, time.Second)
	cfg.Concurrency = cmp.Or(cfg.Concurrency, 16)
	cfg.ListInterval = cmp.Or(cfg.ListInterval, 30*time.Second)
	cfg.CheckpointInterval = cmp.Or(cfg.CheckpointInterval, time.Second)
	cfg.StopTimeout = cmp.Or(cfg.StopTimeout, 30*time.Second)
	cfg.DrainPolls = cmp.Or(cfg.DrainPolls, 5)
	cfg.LeaseTerm = cmp.Or(cfg.LeaseTerm, 10*time.Second)
	cfg.WorkerID = cmp.Or(cfg.WorkerID, newWorkerID())
	cfg.RunID = cmp.Or(cfg.RunID, rand.Text())
	cfg.Streams = streamapi.Bound(cfg.Streams, max(cfg.LeaseTerm, streamapi.CallLeast))
	return &Reader{cfg: cfg}, nil
}

// leaseTermMin is the shortest term in which a write can fail and be repeated.
const leaseTermMin = time.Second

// worker names this Reader in the leases that it claims.
func (cfg *Config) worker() leases.Worker {
	return leases.Worker{Name: cfg.WorkerID, Run: cfg.RunID, Term: cfg.LeaseTerm}
}

// newWorkerID returns a name that no other process has.
func newWorkerID() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host" // the random part is enough
	}
	return host + ":" + rand.Text()
}

// Run follows the stream until ctx ends, and returns nil then: it stops fetching, finishes the batches in hand within
// StopTimeout, checkpoints, and releases its leases. It returns earlier with an error that needs a person or a restart:
// a TrimmedError, ErrStreamNotFound, ErrStreamEnded, ErrNamesake, a RecordError, the processor's error if that is a
// Stopper, or an answer of AWS that would be the same again.
func (r *Reader) Run(ctx context.Context) error { return r.follow(ctx, false) }

// Drain is Run that returns nil as soon as every shard, listed anew, is finished or open and empty for DrainPolls polls, and
// nothing is in flight. Of other workers' shards the rows tell. Whenever a worker has applied records all polls are
// counted anew, because the stream may still hold what that wrote. Alone it ends within 2 s of the last record by default,
// beside others some two terms after it; while records keep coming faster it does not end. It returns a SkippedError if
// leases kept it from reading open shards. If ctx ends before, it stops as Run does, and returns the cause.
func (r *Reader) Drain(ctx context.Context) error { return r.follow(ctx, true) }

func (r *Reader) follow(ctx context.Context, drain bool) error {
	if err := r.begin(); err != nil {
		return err
	}
	defer r.end()
	readers, stop := context.WithCancel(ctx)
	defer stop()
	work, abort := pace.Graceful(readers, context.WithoutCancel(ctx), r.cfg.StopTimeout)
	defer abort()

	f := newFollower(r, drain)
	err := f.run(readers, work)
	stop()
	if errors.Is(err, ErrLeaseLost) {
		abort() // a process of the same name is at work already
	}
	late := f.stopAll()
	if err == nil {
		err = late // else what failed while stopping follows from err
	}
	if err == nil && drain && !f.drained {
		err = context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("following stream %s: %w", r.cfg.StreamARN, err)
	}
	return nil
}

func (r *Reader) begin() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running {
		return errors.New("this stream reader is running already")
	}
	r.running, r.began, r.view = true, time.Now(), view{}
	return nil
}

// recordFinalLag keeps for Stats the lag of the shards that were read when the reader stopped.
func (r *Reader) recordFinalLag(stopped []*shardread.Reader) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range stopped {
		p, left := s.Snapshot(), r.view.left
		if !s.Held.Lease().Finished() && p.EmptyPolls == 0 && !p.Newest.IsZero() && (left.IsZero() || p.Newest.Before(left)) {
			r.view.left = p.Newest
		}
	}
}

func (r *Reader) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running = false
	r.view.shards, r.view.rows, r.view.skipped = nil, nil, nil
}
