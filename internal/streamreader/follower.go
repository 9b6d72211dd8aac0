package streamreader

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dynamill/dynamill/internal/stream/fleet"
	"github.com/dynamill/dynamill/internal/stream/leases"
	"github.com/dynamill/dynamill/internal/stream/shardlist"
	"github.com/dynamill/dynamill/internal/stream/shardread"
	"github.com/dynamill/dynamill/internal/stream/streamapi"
)

const (
	// startMax bounds the time in which a stream's first list of shards must
	// succeed: later, failures may pass; at the start they are more likely a mistake.
	startMax = 30 * time.Second
	// listSoon is the wait for the next list after a shard has ended. It
	// doubles, up to ListInterval, until another ends: children may be listed late.
	listSoon = 500 * time.Millisecond
)

// follower is one run of a Reader: a single goroutine that plans, starts one goroutine for each shard of this worker,
// and takes back its lease when that ends. Only the owner of the stream's own row lists the shards.
type follower struct {
	r       *Reader
	drain   bool
	drained bool
	began   time.Time

	stopping bool // all shards' goroutines are to end

	fleet          *fleet.Member
	lister         shardlist.Lister
	found          shardlist.Listing // the last complete list, and what was found since
	plan           shardlist.Plan
	running        map[string]*shardread.Reader
	children       map[string][]string // by the parent's id, of the rows
	missing        listCounts          // consecutive lists that lacked the shard
	skips          shardlist.SkipDetector
	done           listCounts           // consecutive lists by which a row serves no worker any more
	childless      map[string]time.Time // when a drain first saw this finished shard without a child
	awaits         bool                 // a drain waits for a child that is not listed yet
	initialListing bool                 // not all rows of the shards that the stream had at first are made
	allMade        bool                 // all of them were, before the rows were read
	decoder        streamapi.Decoder

	soon       time.Duration // next wait after a shard has ended
	nextList   time.Time
	nextFull   time.Time             // of all shards, should none end
	listedAt   time.Time             // the last page that came
	lists      <-chan shardlist.Page // pages of the list that is being made; nil if none is
	stopList   context.CancelFunc
	idleAtList bool // all shards were idle when the last list was begun, and are since then
	failing    *streamapi.Backoff

	applies atomic.Int64 // batches applied: by this worker, and as far as it sees by other workers
	shards  shardread.Config
	woken   chan struct{} // holds a token when a shard has ended, or is idle
	wg      sync.WaitGroup

	mu    sync.Mutex
	ended []endedShard // that are not taken yet
}

type endedShard struct {
	id   string
	held *leases.Held
	err  error
}

func newFollower(r *Reader, drain bool) *follower {
	f := &follower{
		r:     r,
		drain: drain,
		began: time.Now(),
		lister: shardlist.Lister{Streams: r.cfg.Streams, Arn: r.cfg.StreamARN,
			Keys: streamapi.Decoder{PartitionKey: r.cfg.PartitionKey, SortKey: r.cfg.SortKey}},
		running:  map[string]*shardread.Reader{},
		missing:  listCounts{},
		soon:     r.cfg.ListInterval,
		stopList: func() {},
		failing:  streamapi.NewBackoff(r.cfg.WorkerID + " lists"),
		woken:    make(chan struct{}, 1),
	}
	f.fleet = fleet.New(fleet.Config{Store: r.cfg.Checkpoints, StreamARN: r.cfg.StreamARN, Worker: r.cfg.worker(), Drains: drain,
		Logger: r.cfg.Logger})
	f.shards = shardread.Config{
		Streams: r.cfg.Streams, StreamARN: r.cfg.StreamARN, WorkerID: r.cfg.WorkerID, Processor: r.cfg.Processor, Logger: r.cfg.Logger,
		BatchMax: r.cfg.BatchMax, PollInterval: r.cfg.PollInterval, CheckpointInterval: r.cfg.CheckpointInterval, StopTimeout: r.cfg.StopTimeout,
		LeaseTerm: r.cfg.LeaseTerm, DrainPolls: r.cfg.DrainPolls, Drains: drain, Open: r.cfg.OpenShard, Row: r.cfg.Checkpoints.Get,
		Turns: make(chan struct{}, r.cfg.Concurrency), Buffer: shardread.NewBuffer(r.cfg.BufferMax), Applies: &f.applies, OnIdle: f.wake,
		OnDone: func(records int) { r.records.Add(int64(records)) },
	}
	return f
}

// run returns nil when ctx has ended or, draining, when the stream is drained.
func (f *follower) run(ctx, work context.Context) error {
	defer func() { f.stopList() }()
	for ctx.Err() == nil {
		if err := f.share(ctx, work); err != nil && ctx.Err() == nil {
			return err
		}
		f.beginListing(ctx)
		f.fleet.SendNews(ctx)
		if err := f.await(ctx, work); err != nil {
			return err
		}
		if finished, err := f.checkFinished(); finished {
			return err
		}
	}
	return nil
}

func (f *follower) balanceAndPublish(ctx, work context.Context) {
	f.balance(ctx, work)
	f.publish()
}

func (f *follower) start(ctx, work context.Context, info streamapi.Shard, held *leases.Held) {
	cfg := f.shards
	cfg.Decoder = f.decoder
	s := shardread.New(&cfg, info, held)
	f.fleet.Resume(s)
	s.Observe(info, f.children[info.ID], f.found.Status)
	f.running[info.ID] = s
	f.r.moves.Add(1)
	ctx, s.Release = context.WithCancel(ctx)
	f.wg.Go(func() {
		defer s.Release()
		err := s.Run(ctx, work)
		f.queueEnded(endedShard{id: info.ID, held: held, err: err})
	})
}

// dropEnded forgets a shard whose goroutine has ended, and its lease. It returns what ends the reading of all shards.
func (f *follower) dropEnded(e endedShard) error {
	s := f.running[e.id]
	delete(f.running, e.id)
	if cause := e.held.Cause(); errors.Is(cause, ErrNamesake) || errors.Is(cause, leases.ErrEvicted) {
		e.err = cause
	}
	if errors.Is(e.err, ErrLeaseLost) || !e.held.Lease().Finished() {
		f.r.moves.Add(1)
	}
	f.fleet.Note(e.held.Lease())
	f.fleet.Drop(e.id)
	f.fleet.NoteNews()
	if errors.Is(e.err, shardread.ErrUnanswered) {
		f.r.cfg.Logger.Warn("released a shard that the stream does not answer for", "shard", e.id, "error", e.err)
		f.fleet.GiveBack(s)
		e.err = nil
	}
	if errors.Is(e.err, ErrLeaseLost) && !errors.Is(e.err, ErrNamesake) {
		level := slog.LevelWarn
		if errors.Is(e.err, leases.ErrEvicted) {
			level = slog.LevelInfo
		}
		f.r.cfg.Logger.Log(context.Background(), level, "lost the lease of a shard", "shard", e.id, "error", e.err)
		e.err = nil
	}
	if errors.Is(e.err, shardread.ErrNotReleased) && !f.stopping {
		f.r.cfg.Logger.Warn("a lease ends without its last checkpoint: the records since the one before come again",
			"shard", e.id, "error", e.err)
		e.err = nil
	}
	return e.err
}

// announceEvery is how often, at most, a worker that stops announces what it has released.
const announceEvery = 200 * time.Millisecond

// stopAll waits for all shards' goroutines, whose context has ended, and
// returns what went wrong while they stopped.
func (f *follower) stopAll() error {
	f.stopping = true
	stopped := slices.Collect(maps.Values(f.running))
	over := make(chan struct{})
	go func() {
		f.wg.Wait()
		close(over)
	}()
	var errs []error
	var announced time.Time
	f.wake() // await may have taken the wake-up of an ended shard and returned at the stop, before dropAllEnded
	for waiting := true; waiting; {
		select {
		case <-f.woken:
			select { // shards that end together are announced once
			case <-time.After(eventsSpan):
			case <-over:
				waiting = false
			}
		case <-over:
			waiting = false
		}
		someEnded, err := f.dropAllEnded()
		errs = append(errs, err)
		f.publish()
		if someEnded && time.Since(announced) > announceEvery { // the others need not wait for the slowest shard
			f.fleet.SendNews(context.Background())
			announced = time.Now()
		}
	}
	f.r.recordFinalLag(stopped)
	f.fleet.Stop()
	return errors.Join(errs...)
}
