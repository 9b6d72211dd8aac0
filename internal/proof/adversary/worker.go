package adversary

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/counting"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/streamreader"
	"github.com/dynamill/dynamill/internal/tablescan"
)

// Worker is one process: an engine that seeds new rules and a reader that feeds
// it, as `dynamill run` wires them.
type Worker struct {
	number int
	name   string // under which it holds leases
	rules  string // the rule file that it knows
	sets   *ruleSets
	client *client
	ctx    context.Context
	cancel context.CancelFunc
	engine *projections.Engine // once it reads the stream
	ended  chan struct{}
	err    error // valid once ended is closed

	counts   int           // that it began
	taskKept chan struct{} // holds a signal when this worker has left a task

	// Changed by the conductor while all workers wait.
	replay *replaying // that it works on, or
	verify *verifying // that it is about; both are nil of one that reads the stream
	errand bool       // it does one small thing
	frozen bool
	outage time.Time // its calls to its tables are throttled until then
	dead   bool
}

// RuleFile is the rule file that the worker knows.
func (w *Worker) RuleFile() string { return w.rules }

// String is the worker's name.
func (w *Worker) String() string { return fmt.Sprintf("worker-%d", w.number) }

// over reports whether the worker has come to its end.
func (w *Worker) over() bool {
	select {
	case <-w.ended:
		return true
	default:
		return false
	}
}

// World is what a worker needs to know.
type World struct {
	Table, StateTable, LeaseTable            string
	StreamARN                                string
	RuleFile                                 string
	HealsMax, FanOutMax, BatchMin, RangesMin int           // 0: the engine's own bounds
	PageMax                                  int32         // items of a page of a scan at most; 0: as many as asked for
	DisplayEvery                             time.Duration // a display is written no more often, by one worker; 0: as records come
	LeaseTerm                                time.Duration
	LeasesTaken                              bool // an operator clears the leases of workers that crash or sleep
	NoneStops                                bool // the lease term is so long that no worker stops because its own clock says so
	Namesakes                                bool // a worker that starts takes the name of a dead one, and with it the leases

	LatePolls int // how many polls find nothing at most where records are late; 0: a few

	Skews []time.Duration // by which the workers' wall clocks are ahead, in turns; none: all are right
}

// clock is a worker's wall clock. How long something takes every worker knows.
func (w *Worker) clock(world World) func() time.Time {
	if len(world.Skews) == 0 {
		return time.Now
	}
	skew := world.Skews[w.number%len(world.Skews)]
	return func() time.Time { return time.Now().Add(skew) }
}

// live runs the worker until ctx ends, or, draining, until everything is seeded and applied. When a rule is to be counted anew, it begins
// anew, as `dynamill run` does.
func (w *Worker) live(ctx context.Context, world World, crew *Crew, drain bool) error {
	for {
		err := w.follow(ctx, world, crew, drain)
		if w.engine == nil || !w.engine.Folds() || !errors.Is(err, projections.ErrEpochMoved) {
			return err
		}
	}
}

// follow seeds, and reads the stream, with the rules of one epoch.
func (w *Worker) follow(ctx context.Context, world World, crew *Crew, drain bool) error {
	set, engine, err := w.open(ctx, world)
	if err != nil {
		return err
	}
	reading := streamreader.Config{
		Streams: w.client, StreamARN: world.StreamARN, Checkpoints: streamreader.NewLeaseTable(w.client, world.LeaseTable),
		Processor: &delivery{engine: engine, to: engine, crew: crew, w: w}, Logger: slog.New(slog.DiscardHandler),
		WorkerID: w.name, RunID: w.String(), LeaseTerm: world.LeaseTerm,
		PartitionKey: set.Table.PartitionKey, SortKey: set.Table.SortKey, DrainPolls: 2,
	}
	if engine.Folds() {
		reading.OpenShard = func(ctx context.Context, c streamreader.Claim) (streamreader.Processor, error) {
			s, err := engine.OpenShard(ctx, projections.ShardClaim{
				Stream: world.StreamARN, Shard: c.Shard, Parent: c.Parent, Orphan: c.Orphan, Checkpoint: c.Checkpoint, Trimmed: c.Trimmed,
			})
			return &delivery{engine: engine, to: s, shard: c.Shard, crew: crew, w: w}, err
		}
	}
	reader, err := streamreader.New(reading)
	if err != nil {
		return err
	}
	w.engine = engine
	if drain {
		reads := reader.Run
		if !engine.Folds() { // nothing that is seeded waits for the reader
			reads = func(context.Context) error { return nil }
		}
		if err := seedBeside(ctx, engine, reads); err != nil {
			return err
		}
		return drainAll(ctx, engine, reader)
	}
	group, working := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := engine.Seed(working, nil); err != nil {
			return fmt.Errorf("seeding: %w", err)
		}
		return nil
	})
	group.Go(func() error { return reader.Run(working) })
	if world.FanOutMax > 0 || world.DisplayEvery > 0 || engine.Folds() {
		group.Go(func() error { return w.workTasks(working, engine) })
	}
	return group.Wait()
}

// seedBeside seeds new rules, and reads the stream until they are seeded.
func seedBeside(ctx context.Context, engine *projections.Engine, reads func(context.Context) error) error {
	group, working := errgroup.WithContext(ctx)
	reading, stop := context.WithCancel(working)
	group.Go(func() error {
		defer stop()
		if err := engine.Seed(working, nil); err != nil {
			return fmt.Errorf("seeding: %w", err)
		}
		return nil
	})
	group.Go(func() error { return reads(reading) })
	return group.Wait()
}

// count counts what the groups of a rule began with, as `dynamill run` does.
func (w *Worker) count(world World, set *rules.Set) func(context.Context, *projections.Generation, func(int64)) error {
	return func(ctx context.Context, g *projections.Generation, report func(int64)) error {
		_, err := counting.Run(ctx, w.counting(world, set, g, counting.Seed))
		return err
	}
}

// counting is a count of one generation of a rule.
func (w *Worker) counting(world World, set *rules.Set, g *projections.Generation, purpose counting.Purpose) counting.Config {
	scanned := &tablescan.Table{Client: w.client, TableName: world.Table, Segments: 1}
	return counting.Config{
		Generation: g, Purpose: purpose, Streams: w.client, StreamARN: world.StreamARN, PartitionKey: set.Table.PartitionKey,
		SortKey: set.Table.SortKey, Leases: streamreader.NewLeaseTable(w.client, world.LeaseTable), Logger: slog.New(slog.DiscardHandler),
		Unique: func() string {
			w.counts++
			return fmt.Sprintf("%s-%d", w, w.counts)
		},
		Items: func(ctx context.Context, add func(change.Key, change.Image) error) error {
			return scanned.Each(ctx, func(item change.Item) error { return add(set.Table.KeyOf(item), item) })
		},
	}
}

// drainAll reads the stream to its end, until no task was left before or meanwhile that would add to it.
func drainAll(ctx context.Context, engine *projections.Engine, reader *streamreader.Reader) error {
	for {
		found := engine.TasksFound()
		if err := engine.LookForTasks(ctx); err != nil {
			return err
		}
		if err := reader.Drain(ctx); err != nil {
			return err
		}
		if _, err := engine.WorkTasks(ctx); err != nil || engine.TasksFound() == found {
			return err
		}
	}
}

// tasksInterval is how often a worker looks for tasks of other workers.
const tasksInterval = 40 * time.Second

// workTasks works off tasks until ctx ends, at once those of this worker.
func (w *Worker) workTasks(ctx context.Context, engine *projections.Engine) error {
	for ctx.Err() == nil {
		select { // a signal that comes with the end of the pause must not lead to two looks, or to one, by chance
		case <-w.taskKept:
		default:
		}
		if _, err := engine.WorkTasks(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-w.taskKept:
		case <-time.After(tasksInterval):
		}
	}
	return nil
}

// open opens an engine with the rules that the worker knows.
func (w *Worker) open(ctx context.Context, world World) (*rules.Set, *projections.Engine, error) {
	set, err := w.sets.load(world.RuleFile)
	if err != nil {
		return nil, nil, err
	}
	engine, err := projections.Open(ctx, w.config(world, set))
	return set, engine, err
}

// incarnation names a state table that the worker founds. A name drawn at random would have scans return rows in another order when the
// history is lived through again.
func (w *Worker) incarnation() string { return fmt.Sprintf("%s at %d", w, time.Now().UnixNano()) }

func (w *Worker) config(world World, set *rules.Set) projections.Config {
	return projections.Config{
		Client: w.client, Table: world.Table, StateTable: world.StateTable, Rules: set,
		Worker: w.String(), HealsMax: world.HealsMax, FanOutMax: world.FanOutMax, BatchMin: world.BatchMin,
		RangesMin: world.RangesMin, DisplayEvery: world.DisplayEvery, Now: w.clock(world), Count: w.count(world, set),
		Incarnation: w.incarnation,
		TaskKept: func() {
			select {
			case w.taskKept <- struct{}{}:
			default:
			}
		},
	}
}

// delivery hands a reader's batches to the engine as the conductor says: as
// they are, cut, in halves that come in the wrong order or at once, or after a
// batch that was delivered before. The records of one item stay in order.
type delivery struct {
	engine *projections.Engine
	to     streamreader.Processor // the engine, or what it does for a shard
	shard  string                 // "" if the engine does not ask
	crew   *Crew
	w      *Worker
}

// batch is a delivery that waits at the gate.
type batch []change.Record

func (b batch) String() string {
	text := ""
	for _, r := range b {
		text += fmt.Sprintf(" %s@%s", r.Key, r.Position.SequenceNumber())
	}
	return text
}

// order is what readers have delivered of one item.
type order struct {
	last      change.Position
	positions map[change.Position]bool
}

// inOrder makes sure that the records of one item are delivered in their order;
// they may be delivered again, by any worker.
func (d *delivery) inOrder(records []change.Record) {
	if d.crew.seen == nil {
		return
	}
	for _, rec := range records {
		o, ok := d.crew.seen[rec.Key]
		if !ok {
			o.positions = map[change.Position]bool{}
		}
		if !o.positions[rec.Position] && rec.Position.Compare(o.last) < 0 {
			d.crew.strange = append(d.crew.strange, fmt.Errorf("%s: record %s of %s comes after %s", d.w, rec.Position, rec.Key, o.last))
		}
		o.positions[rec.Position] = true
		if rec.Position.Compare(o.last) > 0 {
			o.last = rec.Position
		}
		d.crew.seen[rec.Key] = o
	}
}

// Process delivers one batch.
func (d *delivery) Process(ctx context.Context, records []change.Record) (int, error) {
	var cut parcel
	var lane int
	call := &Call{Worker: d.w, Op: opProcess, Input: batch(records)}
	call.perform = func() error {
		d.crew.judgeReading(call, records)
		d.inOrder(records)
		lane = d.crew.newLanes(1 + len(records))
		cut = d.crew.cut(d, records)
		return nil
	}
	if err := d.crew.gate.pass(ctx, call); err != nil {
		return 0, err
	}
	if cut.again != nil {
		if _, err := cut.again.apply(context.WithValue(ctx, laneKey{}, lane), d); errors.Is(err, ErrCrashed) {
			return 0, err
		}
	}
	for try := 0; ; try++ {
		inv := &invocation{calls: -1}
		if try < len(cut.times) {
			inv.calls = cut.times[try]
		}
		done, err := d.invoke(ctx, inv, records, cut, lane)
		switch {
		case len(cut.times) == 0 && !inv.over:
			return done, err
		case try+1 < len(cut.times):
			continue
		}
		return d.giveUp(ctx, records, done)
	}
}

// giveUp has a batch kept for being handed over later. Its driver goes on as if it were done.
func (d *delivery) giveUp(ctx context.Context, records []change.Record, done int) (int, error) {
	err := d.crew.gate.do(ctx, d.w, opGiveUp, batch(records), func() error {
		d.crew.keep(records, done)
		return nil
	})
	if err != nil {
		return 0, err
	}
	return len(records), nil
}

// invoke works off a batch as one invocation.
func (d *delivery) invoke(ctx context.Context, inv *invocation, records []change.Record, cut parcel, lane int) (int, error) {
	within, cancel := context.WithCancelCause(context.WithValue(ctx, invocationKey{}, inv))
	defer cancel(nil)
	inv.cancel = cancel
	return d.process(within, records, cut, lane)
}

// process hands over the parts and returns how many records, from the first, are done.
func (d *delivery) process(ctx context.Context, records []change.Record, cut parcel, lane int) (int, error) {
	done := make([]int, len(cut.parts))
	errs := make([]error, len(cut.parts))
	one := func(i int) {
		ctx := context.WithValue(ctx, laneKey{}, lane+i)
		part := make([]change.Record, len(cut.parts[i]))
		for j, index := range cut.parts[i] {
			part[j] = records[index]
		}
		var r *reading
		errs[i] = d.crew.gate.do(ctx, d.w, opApply, batch(part), func() error {
			r = d.crew.read(part)
			return nil
		})
		if errs[i] == nil {
			done[i], errs[i] = r.apply(ctx, d)
		}
	}
	if cut.atOnce {
		var wg sync.WaitGroup
		for i := range cut.parts {
			wg.Go(func() { one(i) })
		}
		wg.Wait()
	} else {
		for i := range cut.parts {
			if one(i); errs[i] != nil && cut.inOrder {
				break
			}
		}
	}
	first, cause := len(records), error(nil)
	for i, part := range cut.parts {
		if done[i] < len(part) && part[done[i]] < first {
			first, cause = part[done[i]], errs[i]
		}
	}
	return first, cause
}
