package projections

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/ledger"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/registry"
	"github.com/dynamill/dynamill/internal/projections/internal/seeding"
	"github.com/dynamill/dynamill/internal/projections/internal/sightings"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/sweep"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/projections/internal/target"
	"github.com/dynamill/dynamill/internal/rules"
)

const (
	// healsMaxDefault bounds how often the engine corrects one rule's attributes on
	// one item within healWindow. It is far above what an application's own
	// whole-item puts cause, batch by batch, and far below what two programs
	// that answer each other reach.
	healsMaxDefault = 300
)

// Config says what an Engine works on.
type Config struct {
	Client     table.Client
	Table      string
	StateTable string // default: Table and "-dynamill"
	Rules      *rules.Set
	Logger     *slog.Logger  // default: none
	Worker     string        // picks the write suffix of accumulators; default: drawn at random
	FanOutMax  int           // children that a fan-out writes at once; the rest becomes a task; default 1,000
	Limiter    table.Limiter // of what is written; default: none
	// TaskProgress is told after every piece of a fan-out's task; default: nothing. One
	// call of WorkTasks makes the calls one after the other.
	TaskProgress func(TaskProgress)
	HealsMax     int // corrections of one rule's attributes on one item in ten minutes; default 300

	// Now is the wall clock, default time.Now. It is asked for times to live, for
	// the ten minutes of HealsMax, and for what is printed; nothing that must be
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
	suffix       int
	slots        slots
	seen         *sightings.Observer
}

func open(ctx context.Context, cfg Config, way registry.Options) (*Engine, error) {
	cfg.StateTable = stateTableOf(cfg.Table, cfg.StateTable)
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	cfg.FanOutMax = cmp.Or(cfg.FanOutMax, fanOutMaxDefault)
	cfg.HealsMax = cmp.Or(cfg.HealsMax, healsMaxDefault)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	ts := table.New(cfg.Client, cfg.Limiter, cfg.Table, cfg.StateTable)
	e := &Engine{
		ruleReader: ruleReader{reader: ts.Reader}, tables: ts, taskProgress: cfg.TaskProgress, suffix: workerSuffix(cfg.Worker),
		host: &host.Host{Tables: ts, Logger: cfg.Logger, Now: cfg.Now, HealsMax: int64(cfg.HealsMax), FanOutMax: cfg.FanOutMax},
	}
	e.host.Targets = target.Writer{Tables: ts, ParkRefused: e.host.ParkRefused}
	if e.tables.StateTable == e.tables.Table {
		return nil, &table.SetupError{Problem: fmt.Sprintf("table %s cannot be its own state table", e.tables.Table),
			Remedy: "name another one with --state-table"}
	}
	var err error
	way.Rules, way.Now = cfg.Rules, cfg.Now
	if e.registry, err = registry.Open(ctx, ts, way); err != nil {
		return nil, err
	}
	e.planner, e.host.Planner = e.registry.Planner, e.registry.Planner
	e.ledger = ledger.New(e.host, e.registry.RaiseEpochAbove)
	e.host.Ledger = e.ledger
	e.seeding = &seeding.Seeding{Tables: ts, Planner: e.planner, Registry: e.registry}
	e.sweep = &sweep.Sweep{Host: e.host, Kinds: Kinds, Entry: e.ledger.Entry, Rederive: func(ctx context.Context, items []change.Key) error {
		return e.rederive(ctx, items, plan.Itself, nil, nil)
	}}
	e.host.Missing = sightings.NewMissing(e.planner.Bindings)
	e.seen = sightings.New(e.tables, e.planner, e.host.Missing, cfg.Now, state.NewID())
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
	c, sent := &e.host.Counters, &e.tables.Counters
	return Stats{
		Records: c.Records.Load(), Relevant: c.Relevant.Load(), Unmatched: c.Unmatched.Load(),
		Transactions: sent.Transactions.Load(), Writes: sent.Writes.Load(), Rollups: c.Rollups.Load(),
		Children: c.Children.Load(), Made: c.Made.Load(), Parked: c.Parked.Load(), Heals: c.Heals.Load(),
		Tasks: c.Tasks.Load(), Retries: sent.Retries.Load(), Conflicts: sent.Conflicts.Load(), Throttles: sent.Throttles.Load(),
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
