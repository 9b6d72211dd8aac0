package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/progress"
	"github.com/dynamill/dynamill/internal/monitor"
	"github.com/dynamill/dynamill/projections"
	"github.com/dynamill/dynamill/replay/archive"
	"github.com/dynamill/dynamill/rules"
	"github.com/dynamill/dynamill/streamreader"
)

// follower seeds new rules and follows the stream at the same time, so that the
// seeding of a large table never lets the stream run out of its 24 hours.
type follower struct {
	env       *environment
	engine    *projections.Engine
	reader    *streamreader.Reader
	logger    *slog.Logger
	started   time.Time
	streamARN string
	archive   *archive.Writer // nil: none is kept

	items   int64                       // of the table, about; 0: not known
	seeding atomic.Pointer[seedState]   // nil when nothing is seeded
	fanOut  atomic.Pointer[fanOutState] // nil when no task is worked off
	drained atomic.Bool
	pieces  atomic.Int64 // of tasks, worked off
}

// newFollower makes ready to follow. It reads the checkpoints, whose table it
// creates if it is missing, and refuses to follow where they tell that changes
// of the table reached nobody.
func newFollower(ctx context.Context, env *environment, engine *projections.Engine, keys rules.Table, streamARN string, o *overseer, options runOptions) (*follower, error) {
	f := &follower{env: env, engine: engine, logger: o.logger, started: time.Now(), streamARN: streamARN, items: env.items.Load()}
	leases := streamreader.NewLeaseTable(env.tables, env.leaseTable)
	rows, err := leases.Load(ctx)
	if err != nil {
		return nil, env.classify(fmt.Errorf("reading the checkpoints in %s: %w", env.leaseTable, err))
	}
	for _, row := range rows {
		if row.Stream != "" && row.Stream != streamARN {
			remedy := f.replayMissed()
			return nil, &endedError{state: monitor.StreamReplaced, remedy: remedy, error: fmt.Errorf(
				"table %q had another stream before (%s), and what changed between that one and this reached nobody: %s",
				env.table, row.Stream, remedy)}
		}
	}
	if err := engine.NoteFollowed(ctx, env.leaseTable); err != nil {
		return nil, env.classify(fmt.Errorf("noting the lease table %s in the state table: %w", env.leaseTable, err))
	}
	processor, err := f.archived(guard{engine, env}, keys, options)
	if err != nil {
		return nil, err
	}
	f.reader, err = streamreader.New(streamreader.Config{
		Streams: env.streams, StreamARN: streamARN, Checkpoints: leases, Logger: f.logger,
		Processor:    tallied{processor, &o.read},
		PartitionKey: keys.PartitionKey, SortKey: keys.SortKey,
		WorkerID: options.worker, LeaseTerm: options.leaseTerm,
	})
	if err != nil {
		return nil, fmt.Errorf("preparing to read the stream: %w", err)
	}
	o.follower.Store(f)
	env.renewal.turnOn(o.holder.SetExpired)
	return f, nil
}

// guard stops the reader where the surroundings refuse the engine's writes: a
// permission that is missing does not come back by trying again, and a stream
// that waits for it looks like one that is empty.
type guard struct {
	streamreader.Processor
	env *environment
}

// Process hands the records on.
func (g guard) Process(ctx context.Context, records []change.Record) (int, error) {
	done, err := g.Processor.Process(ctx, records)
	if told := g.env.refused(err); told != nil {
		return done, &refusedError{told, err}
	}
	return done, err
}

// refusedError ends the reading.
type refusedError struct {
	error       // the sentence
	cause error // what AWS answered
}

func (e *refusedError) Unwrap() []error { return []error{e.error, e.cause} }

// StopReading tells the stream reader that trying again is of no use.
func (e *refusedError) StopReading() bool { return true }

// follow works until ctx ends, or with drain until everything is seeded and the
// stream, read to its end once more after that, is applied.
func (f *follower) follow(ctx context.Context, screen *progress.Screen, drain bool) error {
	stopShowing := progress.Start(ctx, screen, f.logger, f.watchProgress(drain))
	defer stopShowing()

	seedingOver := make(chan struct{})
	group, working := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := f.seed(working); err != nil {
			return fmt.Errorf("seeding: %w", err)
		}
		close(seedingOver)
		return nil
	})
	group.Go(func() error {
		if !drain {
			return f.reader.Run(working)
		}
		if err := f.readUntil(working, seedingOver); err != nil {
			return err
		}
		if err := f.drainAll(working); err != nil {
			return err
		}
		f.drained.Store(true)
		return nil
	})
	if !drain {
		group.Go(func() error { return f.workTasks(working) })
		group.Go(func() error { f.tellSightings(ctx, working, seedingOver); return nil })
	}
	err := group.Wait()
	cause := context.Cause(ctx)
	if cause == nil || err != nil && !errors.Is(err, cause) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	// Stopped from outside: a good end for one who was only to follow, and for
	// one who was to drain if that was done already.
	if !drain || f.drained.Load() {
		return nil
	}
	return cause
}

// drainAll reads the stream to its end, until no task is left that would add to it.
func (f *follower) drainAll(ctx context.Context) error {
	for {
		if ctx.Err() != nil { // a reader that begins anew forgets how far it came
			return context.Cause(ctx)
		}
		if err := f.reader.Drain(ctx); err != nil {
			return err
		}
		pieces, err := f.engine.WorkTasks(ctx)
		f.fanOut.Store(nil)
		f.pieces.Add(int64(pieces))
		if err != nil || pieces == 0 {
			return err
		}
	}
}

// noteTask takes what the engine tells of a fan-out's task.
func (f *follower) noteTask(p projections.TaskProgress) {
	state := &fanOutState{TaskProgress: p, began: time.Now()}
	f.fanOut.Store(state.since(f.fanOut.Load()))
}

// tasksPoll is how often a process looks for what large fan-outs have left.
const tasksPoll = 5 * time.Second

// workTasks works off tasks beside the stream until ctx ends. What fails is
// tried again: the records do not wait for it.
func (f *follower) workTasks(ctx context.Context) error {
	for {
		pieces, err := f.engine.WorkTasks(ctx)
		f.fanOut.Store(nil)
		f.pieces.Add(int64(pieces))
		if stops := streamreader.Stopper(nil); errors.As(err, &stops) && stops.StopReading() {
			return err
		}
		if err != nil && ctx.Err() == nil {
			f.logger.Warn("working off a task failed, will retry", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(tasksPoll):
		}
	}
}

// backlogPoll is how often seeding asks whether the reader has caught up.
const backlogPoll = 100 * time.Millisecond

// seed derives everything that the table already holds for rules that are new
// to it. What the stream holds from before is applied first: after the scan it
// would take the items through their past once more.
func (f *follower) seed(ctx context.Context) (err error) {
	defer func() {
		if err == nil { // otherwise the last sentence says how far it came
			f.seeding.Store(nil)
		}
	}()
	for len(f.engine.Describe().NewRules) > 0 && !f.reader.Stats().CaughtUp {
		f.seeding.Store(&seedState{text: "new rules once the stream's backlog is applied", waits: true})
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(backlogPoll):
		}
	}
	if names := f.engine.Describe().NewRules; len(names) > 0 {
		f.seeding.Store(&seedState{text: strings.Join(names, ", "), pass: 1})
	}
	last := 0
	return f.engine.Seed(ctx, func(p projections.SeedProgress) {
		text := fmt.Sprintf("pass %d of %d, %s items", p.Pass, p.Passes, grouped(p.Items))
		f.seeding.Store(&seedState{text: text, pass: p.Pass, passes: p.Passes, items: p.Items})
		if p.Done {
			f.logger.Info("seeding is done", "passes", p.Passes)
			return
		}
		if p.Pass != last {
			f.logger.Info("seeding", "rules", p.Rules, "pass", p.Pass, "passes", p.Passes, "items", p.Items)
		}
		last = p.Pass
	})
}

// readUntil follows the stream until over is closed, and then stops gracefully.
func (f *follower) readUntil(ctx context.Context, over <-chan struct{}) error {
	select {
	case <-over:
		return nil // nothing was to be seeded
	default:
	}
	reading, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-over:
			stop()
		case <-reading.Done():
		}
	}()
	return f.reader.Run(reading)
}

// snapshot is how far things are.
func (f *follower) snapshot() snapshot {
	done, read := f.engine.Stats(), f.reader.Stats()
	now := snapshot{Records: read.Records, Lag: read.Lag, Writes: done.Writes, Healed: done.Heals, Parked: done.Parked}
	if seed := f.seeding.Load(); seed != nil {
		now.Seeding = seed.text
	}
	return now
}
