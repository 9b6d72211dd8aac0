package projections

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/dynamill/dynamill/internal/pace"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/ledger"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/registry"
	"github.com/dynamill/dynamill/internal/projections/internal/seeding"
	"github.com/dynamill/dynamill/internal/projections/internal/sightings"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/sweep"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/rules"
)

const (
	// healsMaxDefault bounds how often the engine corrects one rule's attributes on
	// one item within healWindow. It is far above what an application's own
	// whole-item puts cause, batch by batch, and far below what two programs
	// that answer each other reach.
	healsMaxDefault = 300

	// batchMinDefault is how many writes of targets go out in batches: fewer take no longer side by side.
	batchMinDefault = 5
)

// Config says what an Engine works on.
type Config struct {
	Client     table.Client
	Table      string
	StateTable string // default: Table and "-dynamill"
	Rules      *rules.Set
	Logger     *slog.Logger // default: none
	Worker     string       // picks the write suffix of accumulators; default: drawn at random
	FanOutMax  int          // children that a fan-out writes at once; the rest becomes a task; default 1,000
	RangesMin  int          // children of a fan-out from which on it is cut into ranges; default 10,000
	Budget     int          // write units per second that background work keeps to, see pace.Budget; default: no bound
	// TaskProgress is told after every piece of a fan-out's task; default: nothing. One
	// call of WorkTasks makes the calls one after the other.
	TaskProgress func(TaskProgress)
	TaskKept     func() // is called whenever this engine has left a task, and must not block; default: nothing
	Creating     func() // called while DynamoDB makes the state table; default: nothing
	HealsMax     int    // corrections of one rule's attributes on one item in ten minutes; default 300
	BatchMin     int    // so many writes of targets that wait at the same time go out in batches; default 5

	// Now is the wall clock, default time.Now. It is asked for times to live, for
	// the ten minutes of HealsMax, for how long a worker holds a task, and for what is printed; nothing that must be
	// true depends on it, so that processes' clocks need not agree.
	Now func() time.Time
}

// ruleReader reads the two tables under one rule set. All that only reads is here.
type ruleReader struct {
	reader  *table.Reader
	planner *plan.Planner
}

// Engine applies a rule set to one table. It is safe for concurrent use.
type Engine struct {
	ruleReader
	tables       *table.Tables
	host         *host.Host // as the kinds of rules see the engine
	ledger       *ledger.Ledger
	registry     *registry.Registry
	seeding      *seeding.Seeding
	sweep        *sweep.Sweep
	taskProgress func(TaskProgress) // nil: nothing is told
	tasksFound   *atomic.Int64
	suffix       int
	slots        *slots
	seen         *sightings.Observer
}

func open(ctx context.Context, cfg Config, way registry.Options) (*Engine, error) {
	cfg.StateTable = stateTableOf(cfg.Table, cfg.StateTable)
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	cfg.FanOutMax = cmp.Or(cfg.FanOutMax, fanOutMaxDefault)
	cfg.RangesMin = cmp.Or(cfg.RangesMin, rangesMinDefault)
	cfg.HealsMax = cmp.Or(cfg.HealsMax, healsMaxDefault)
	cfg.BatchMin = cmp.Or(cfg.BatchMin, batchMinDefault)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Creating == nil {
		cfg.Creating = func() {}
	}
	if cfg.TaskKept == nil {
		cfg.TaskKept = func() {}
	}
	ts := table.New(cfg.Client, cfg.Table, cfg.StateTable)
	ts.Logger, ts.BatchMin, ts.Budget = cfg.Logger, cfg.BatchMin, pace.NewBudget(cfg.Budget)
	e := &Engine{
		ruleReader: ruleReader{reader: ts.Reader}, taskProgress: cfg.TaskProgress, suffix: workerSuffix(cfg.Worker),
		tasksFound: &atomic.Int64{}, slots: &slots{},
	}
	if ts.StateTable == ts.Table {
		return nil, &table.SetupError{Problem: fmt.Sprintf("table %s cannot be its own state table", ts.Table),
			Remedy: "name another one with --state-table"}
	}
	var err error
	way.Rules, way.Now, way.Creating = cfg.Rules, cfg.Now, cfg.Creating
	if e.registry, err = registry.Open(ctx, ts, way); err != nil {
		return nil, err
	}
	e.planner = e.registry.Planner
	e.seeding = &seeding.Seeding{Tables: ts, Planner: e.planner, Registry: e.registry}
	process := state.NewID()
	e.connect(ts, host.New(host.Host{
		Process: process, Planner: e.planner, Missing: sightings.NewMissing(e.planner.Bindings), Logger: cfg.Logger, Now: cfg.Now,
		HealsMax: int64(cfg.HealsMax), FanOutMax: cfg.FanOutMax, RangesMin: cfg.RangesMin, TaskKept: cfg.TaskKept,
	}))
	e.seen = sightings.New(ts, e.planner, e.host.Missing, cfg.Now, process)
	return e, nil
}

// stateTableOf is the name of the state table of a table, if it is given none.
func stateTableOf(name, given string) string { return cmp.Or(given, name+"-dynamill") }

func workerSuffix(worker string) int {
	if worker == "" {
		worker = state.NewID()
	}
	h := fnv.New32a()
	h.Write([]byte(worker))
	return int(h.Sum32() & 0x7fffffff)
}

// Describe returns what Open found and did.
func (e *Engine) Describe() Description { return e.registry.Found }

// Stats returns the counts so far.
func (e *Engine) Stats() Stats {
	c, sent := e.host.Counters, &e.tables.Counters
	return Stats{
		Records: c.Records.Load(), Relevant: c.Relevant.Load(), Unmatched: c.Unmatched.Load(),
		Transactions: sent.Transactions.Load(), Writes: sent.Writes.Load(), Rollups: c.Rollups.Load(),
		Children: c.Children.Load(), Made: c.Made.Load(), Parked: c.Parked.Load(), Heals: c.Heals.Load(),
		Tasks: c.Tasks.Load(), TaskPieces: c.TaskPieces.Load(),
		Retries: sent.Retries.Load(), Conflicts: sent.Conflicts.Load(), Throttles: sent.Throttles.Load(),
	}
}

// slots hands every Process call under way a number of its own, so that calls
// at the same time write to different suffixes of an accumulator.
type slots struct{ taken atomic.Uint64 }

func (s *slots) take() (slot int, release func()) {
	for {
		taken := s.taken.Load()
		for slot = range 64 {
			if taken&(1<<slot) == 0 {
				break
			}
		}
		bit := uint64(1) << slot
		if taken&bit != 0 { // all 64 are taken: share one
			return slot, func() {}
		}
		if s.taken.CompareAndSwap(taken, taken|bit) {
			return slot, func() { s.taken.And(^bit) }
		}
	}
}
