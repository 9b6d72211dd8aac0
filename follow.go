package dynamill

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"golang.org/x/sync/errgroup"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/awserror"
	"github.com/dynamill/dynamill/internal/following"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/replay/archive"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/streamreader"
)

// Follow keeps the derived data of a table true until ctx ends: it creates dynamill's own tables if
// they are missing, seeds new rules, follows the table's stream, and works off large fan-outs beside
// it. Any number of processes may follow one table: they divide the stream between them.
//
// When ctx ends, Follow finishes what is in flight, saves its checkpoints, gives its leases away and
// returns nil, within 45 s. With Drain it returns nil when everything is applied, and the cause of ctx
// if that ends before. Another process, or the next call, goes on where this one stopped; nothing is
// applied twice.
//
// It retries whatever may pass. Other errors end it: a *projections.SetupError if table, stream or
// dynamill's own tables are not as they must be; a *projections.RulesChangedError if the rules differ
// from those in force; an *EndedError if a person must act before the table can be followed again; an
// error of AWS that is the same for each attempt, such as a missing permission.
func Follow(ctx context.Context, cfg Config) error {
	running := &Running{}
	for moved := error(nil); ; {
		err := follow(ctx, cfg, running)
		if moved != nil && errors.As(err, new(*projections.RulesChangedError)) {
			return moved // the rules of this start were in force: another process has registered newer ones
		}
		f := running.follower.Load()
		if f == nil || !f.engine.Folds() || !errors.Is(err, projections.ErrEpochMoved) {
			return err
		}
		// A rule that counts by stream position is counted anew, or other rules are in force: the next start tells.
		moved = err
		f.Logger.Info("the registry of rules has changed: the engine is opened again")
	}
}

// follow follows the table until ctx ends, or the rules epoch moves.
func follow(ctx context.Context, cfg Config, running *Running) error {
	f, err := start(ctx, cfg, running)
	if f != nil {
		defer f.endArchive()
	}
	switch cause := context.Cause(ctx); {
	case err == nil:
		return f.ended(ctx, f.follow(ctx))
	case cause == nil:
		return err
	case cfg.Drain:
		return fmt.Errorf("%w: nothing was followed yet", cause)
	}
	return nil
}

// follower seeds new rules beside the stream: seeding a large table may take longer than the stream keeps records.
type follower struct {
	Config
	place     awserror.Place
	own       following.Tables
	traces    following.Traces // of before this start
	streamARN string
	items     int64 // of the table, about; 0: not known
	set       *rules.Set
	engine    *projections.Engine
	reader    *streamreader.Reader
	leases    streamreader.Checkpoints
	archive   *archive.Writer // nil: none is kept

	read    atomic.Int64                // records handed to the engine
	seeding atomic.Pointer[seedState]   // nil when nothing is seeded
	fanOut  atomic.Pointer[fanOutState] // nil when no task is worked off
	drained atomic.Bool

	taskKept chan struct{} // holds a signal once the engine has stored a task or put off a roll-up
}

// start opens the engine on the table. It returns a follower with an error if that has an archive to be closed.
func start(ctx context.Context, cfg Config, running *Running) (*follower, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	set, err := compile(cfg.Rules)
	if err != nil {
		return nil, err
	}
	if cfg.BesideFunction && len(set.Folded()) == 0 {
		return nil, &projections.SetupError{
			Problem: "no rule counts by stream position, so nothing is left for a process with Config.BesideFunction",
			Remedy:  "leave Config.BesideFunction out: then all rules are kept",
		}
	}
	f := &follower{Config: cfg, set: set, place: placeOf(cfg.Tables, cfg.Table), taskKept: make(chan struct{}, 1),
		own: following.Tables{State: cfg.StateTable, Lease: cfg.LeaseTable}}
	if err := f.findStream(ctx); err != nil {
		return nil, err
	}
	if err := f.refuseCheckpointsBesideFunction(); err != nil {
		return nil, err
	}
	if err := f.openEngine(ctx); err != nil {
		return nil, err
	}
	if err := f.openReader(); err != nil {
		return f, err
	}
	if first := running.follower.Swap(f) == nil; first && cfg.Started != nil {
		running.StreamARN, running.StateTable, running.LeaseTable, running.Items = f.streamARN, f.StateTable, f.LeaseTable, f.items
		cfg.Started(running)
	}
	return f, f.checkLeases(ctx)
}

// findStream finds the table's stream. It refuses to make a deleted state table anew, which would seed every rule again.
func (f *follower) findStream(ctx context.Context) error {
	var reading errgroup.Group
	reading.Go(func() (err error) {
		f.traces, err = f.own.Traces(ctx, f.Tables)
		return err
	})
	table, err := following.Describe(ctx, f.Tables, f.place)
	tracesErr := reading.Wait()
	if err == nil {
		err = following.InUse(table, f.place)
	}
	if err != nil {
		return inProgram(err)
	}
	if f.streamARN, err = following.Stream(table, f.place); err != nil {
		return err
	}
	f.items = aws.ToInt64(table.ItemCount)
	lost := f.traces.Lost(f.streamARN)
	if tracesErr != nil || lost == following.LostNone {
		return tracesErr
	}
	problem, remedy := f.own.LostText(lost)
	if lost == following.LostState {
		return &projections.SetupError{Problem: problem, Remedy: remedy}
	}
	f.Logger.Warn(problem + ": " + remedy)
	return nil
}

// refuseCheckpointsBesideFunction refuses checkpoints of a process that left rules to a function, unless this one does so, too: the
// function may be behind them. No rule is registered by then.
func (f *follower) refuseCheckpointsBesideFunction() error {
	if f.BesideFunction || !f.traces.BesideFunction || len(f.traces.Leases) == 0 {
		return nil
	}
	return &projections.SetupError{
		Problem: fmt.Sprintf("the lease table %s has the checkpoints of a process that left rules to a function: records that the function has "+
			"not applied yet would be skipped", f.LeaseTable),
		Remedy: fmt.Sprintf("if the function is to keep these rules, go on beside it (`dynamill run --beside-function`); otherwise disable its "+
			"event source mapping, and delete the lease table %s: then the stream is read from its oldest record, which changes nothing twice",
			f.LeaseTable),
	}
}

// openEngine also creates the lease table if the engine creates the state table: DynamoDB takes seconds for each.
func (f *follower) openEngine(ctx context.Context) (err error) {
	f.leases = streamreader.NewLeaseTable(f.Tables, f.LeaseTable)
	var creating errgroup.Group
	defer func() { _ = creating.Wait() }() // if it failed, checkLeases tries again
	cfg := projections.Config{
		Client: f.Tables, Table: f.Table, StateTable: f.StateTable, Rules: f.set, Logger: f.Logger, Worker: f.Worker,
		Count: f.count, FanOutMax: f.FanOutMax, TaskProgress: f.noteTask, TaskKept: f.wakeTasks, Budget: f.Budget, DisplayEvery: displayEvery,
		OnlyFolding: f.BesideFunction,
		Creating: func() {
			creating.Go(func() error {
				_, err := f.leases.Load(ctx)
				return err
			})
		},
	}
	if f.engine, err = projections.Open(ctx, cfg); err != nil {
		return fmt.Errorf("starting on table %q: %w", f.Table, inProgram(err))
	}
	return nil
}

func (f *follower) openReader() (err error) {
	keys := f.set.Table
	if f.Archive != "" {
		f.archive, err = archive.Open(archive.Config{
			Dir: f.Archive, StreamARN: f.streamARN, Gzip: f.ArchiveGzip, PartitionKey: keys.PartitionKey, SortKey: keys.SortKey,
		})
		if err != nil {
			return &projections.SetupError{Problem: "Config.Archive " + f.Archive + " cannot be used", Remedy: err.Error(), Err: err}
		}
	}
	reading := streamreader.Config{
		Streams: f.Streams, StreamARN: f.streamARN, Checkpoints: f.leases, Logger: f.Logger, Processor: f.processor(f.engine),
		PartitionKey: keys.PartitionKey, SortKey: keys.SortKey, WorkerID: f.Worker, LeaseTerm: f.LeaseTerm,
		PollInterval: f.PollInterval,
	}
	if f.engine.Folds() {
		reading.OpenShard = f.openShard
	}
	f.reader, err = streamreader.New(reading)
	if err != nil {
		return fmt.Errorf("preparing to read the stream: %w", err)
	}
	return nil
}

// processor is what the reader feeds: the archive takes the records before the engine does.
func (f *follower) processor(p streamreader.Processor) streamreader.Processor {
	if f.archive != nil {
		p = archive.Recorder{Processor: p, Writer: f.archive}
	}
	return guard{p, f.place, &f.read}
}

// openShard has the engine know the shard of the records that follow.
func (f *follower) openShard(ctx context.Context, c streamreader.Claim) (streamreader.Processor, error) {
	s, err := f.engine.OpenShard(ctx, projections.ShardClaim{
		Stream: f.streamARN, Shard: c.Shard, Parent: c.Parent, Orphan: c.Orphan, Checkpoint: c.Checkpoint, Trimmed: c.Trimmed,
	})
	if told := awserror.Explain(err, f.place); told != nil && told.StopReading() {
		return nil, told
	}
	if err != nil {
		return nil, err
	}
	return f.processor(s), nil
}

// checkLeases refuses to follow if the checkpoints tell that changes of the table were lost. If a process has followed
// with them before, they were read already. Otherwise it reads them, creates their table if it is missing, and
// notes the table in the registry.
func (f *follower) checkLeases(ctx context.Context) (err error) {
	rows := f.traces.Leases
	followed := f.traces.Followed && len(rows) > 0 && !f.engine.Describe().StateTableCreated
	if !followed {
		if rows, err = f.leases.Load(ctx); err != nil {
			return fmt.Errorf("reading the checkpoints in %s: %w", f.LeaseTable, err)
		}
	}
	for _, row := range rows {
		if row.Stream != "" && row.Stream != f.streamARN {
			return &EndedError{
				State: streamReplaced, Remedy: f.own.ReplayMissed(),
				Problem: fmt.Sprintf("table %q had another stream before (%s): no process has applied the changes between that one "+
					"and this one", f.Table, row.Stream),
			}
		}
	}
	if followed && f.traces.BesideFunction == f.BesideFunction {
		return nil
	}
	if err := f.engine.RecordLeaseTable(ctx, f.LeaseTable, f.BesideFunction); err != nil {
		return fmt.Errorf("noting the lease table %s in the state table: %w", f.LeaseTable, err)
	}
	return nil
}

// endArchive closes the file that is being written. All checkpointed records are on disk already.
func (f *follower) endArchive() {
	if f.archive == nil {
		return
	}
	if err := f.archive.Close(); err != nil {
		f.Logger.Warn("the archive's last file did not close: its end may look torn", "error", err)
	}
}

// follow works until ctx ends, or with Drain until everything is seeded and the stream then applied to its end.
func (f *follower) follow(ctx context.Context) error {
	seedingOver, endSeeding := context.WithCancel(context.WithoutCancel(ctx))
	defer endSeeding()
	group, working := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := f.seedUntilDone(working); err != nil {
			return err
		}
		endSeeding()
		return nil
	})
	if f.Drain {
		group.Go(func() error { return f.drain(working, seedingOver) })
	} else {
		group.Go(func() error { return f.reader.Run(working) })
		group.Go(func() error { return f.workTasks(working, nil) })
		group.Go(func() error { f.logSightings(ctx, working, seedingOver); return nil })
	}
	err := group.Wait()
	cause := context.Cause(ctx)
	if cause == nil || err != nil && !errors.Is(err, cause) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	// Stopped from outside: a good end, unless what was to be drained is not.
	if !f.Drain || f.drained.Load() {
		return nil
	}
	return cause
}

// guard counts records, and stops the reader if AWS refuses the engine's writes: no retry brings a missing permission
// back, and a stream that waits for it looks like an empty one.
type guard struct {
	streamreader.Processor
	place awserror.Place
	read  *atomic.Int64
}

// Process hands the records on.
func (g guard) Process(ctx context.Context, records []change.Record) (int, error) {
	g.read.Add(int64(len(records)))
	done, err := g.Processor.Process(ctx, records)
	if told := awserror.Explain(err, g.place); told != nil && told.StopReading() {
		return done, told
	}
	return done, err
}
