package projections

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"math/bits"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/pace"
	"github.com/dynamill/dynamill/internal/projections/inspect"
	"github.com/dynamill/dynamill/internal/projections/internal/folding"
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
	// healsMaxDefault is far above what an application's own whole-item puts cause, and far below what two programs that answer
	// each other reach.
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
	RangesMin  int          // children from which on a fan-out is cut into ranges; default 10,000
	Budget     int          // write units per second that background work keeps to, see pace.Budget; default: no bound
	// TaskProgress is told after every piece of a fan-out's task, and the zero value when none is left; default: nothing. One
	// call of WorkTasks makes the calls one after the other.
	TaskProgress func(TaskProgress)
	TaskKept     func()        // is called whenever this engine has left a task, and must not block; default: nothing
	DisplayEvery time.Duration // least time between writes of a display that many records change: WorkTasks does the rest; default: 0
	DueOnly      bool          // WorkTasks leaves displays that may not be written yet to the process that put them off
	// OnlyFolding: this engine applies records to hot rules only; another program applies them to the others.
	OnlyFolding bool
	// Count finds what the groups of a hot rule began with, and calls report with the number of items that it has read so far. nil: this
	// program does not read the stream, so it cannot count.
	Count    func(ctx context.Context, g *Generation, report func(items int64)) error
	Creating func() // called while DynamoDB makes the state table; default: nothing
	HealsMax int    // corrections of one rule's attributes on one item in ten minutes; default 300
	BatchMin int    // writes that wait at the same time go out in batches from this number on; default 5

	// Now is the wall clock, default time.Now. It is asked for times to live, for
	// the ten minutes of HealsMax, for how long a worker holds a task, and for what is printed; nothing that must be
	// true depends on it, so that processes' clocks need not agree.
	Now func() time.Time
	// Incarnation returns a name, without a slash, for a state table that this engine creates: one that no other has; default: drawn at
	// random.
	Incarnation func() string
}

// Engine applies a rule set to one table. It is safe for concurrent use.
type Engine struct {
	inspect.ParkedReader
	planner      *plan.Planner
	tables       *table.Tables
	host         *host.Host // as the kinds of rules see the engine
	ledger       *ledger.Ledger
	registry     *registry.Registry
	seeding      *seeding.Seeding
	sweep        *sweep.Sweep
	folding      *folding.Folding
	count        func(ctx context.Context, g *Generation, report func(items int64)) error // nil: this program cannot
	taskProgress func(TaskProgress)
	dueOnly      bool // see Config.DueOnly
	tasksFound   *atomic.Int64
	suffix       int
	slots        *slots
	seen         *sightings.Observer
}

func open(ctx context.Context, cfg Config, way registry.Options) (*Engine, error) {
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	cfg.FanOutMax = cmp.Or(cfg.FanOutMax, fanOutMaxDefault)
	cfg.RangesMin = cmp.Or(cfg.RangesMin, rangesMinDefault)
	cfg.HealsMax = cmp.Or(cfg.HealsMax, healsMaxDefault)
	cfg.BatchMin = cmp.Or(cfg.BatchMin, batchMinDefault)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Incarnation == nil {
		cfg.Incarnation = state.NewID
	}
	if cfg.Creating == nil {
		cfg.Creating = func() {}
	}
	if cfg.TaskKept == nil {
		cfg.TaskKept = func() {}
	}
	if cfg.TaskProgress == nil {
		cfg.TaskProgress = func(TaskProgress) {}
	}
	ts := table.New(cfg.Client, cfg.Table, cfg.StateTable)
	ts.Logger, ts.BatchMin, ts.Budget = cfg.Logger, cfg.BatchMin, pace.NewBudget(cfg.Budget)
	e := &Engine{
		taskProgress: cfg.TaskProgress, dueOnly: cfg.DueOnly, suffix: workerSuffix(cfg.Worker),
		tasksFound: &atomic.Int64{}, slots: &slots{}, count: cfg.Count,
	}
	if ts.StateTable == ts.Table {
		return nil, &table.SetupError{Problem: fmt.Sprintf("table %s cannot be its own state table", ts.Table),
			Remedy: "name another one with --state-table"}
	}
	var err error
	way.Rules, way.Now, way.Incarnation, way.Creating = cfg.Rules, cfg.Now, cfg.Incarnation, cfg.Creating
	if e.registry, err = registry.Open(ctx, ts, way); err != nil {
		return nil, err
	}
	e.planner = e.registry.Planner
	e.ParkedReader = inspect.NewParkedReader(ts.Reader, e.planner)
	e.planner.OnlyFolding = cfg.OnlyFolding
	e.seeding = &seeding.Seeding{Tables: ts, Planner: e.planner, Registry: e.registry}
	process := state.NewID()
	e.connect(ts, host.New(host.Host{
		Process: process, Planner: e.planner, Missing: sightings.NewMissing(e.planner.Bindings), Logger: cfg.Logger, Now: cfg.Now,
		HealsMax: int64(cfg.HealsMax), FanOutMax: cfg.FanOutMax, RangesMin: cfg.RangesMin, TaskKept: cfg.TaskKept,
		DisplayEvery: cfg.DisplayEvery,
	}))
	e.seen = sightings.New(ts, e.planner, e.host.Missing, cfg.Now, process)
	return e, nil
}

func workerSuffix(worker string) int {
	h := fnv.New32a()
	h.Write([]byte(cmp.Or(worker, state.NewID())))
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
		Children: c.Children.Load(), Made: c.Made.Load(), Deleted: c.Deleted.Load(), Parked: c.Parked.Load(), Heals: c.Heals.Load(),
		Tasks: c.Tasks.Load(), TaskPieces: c.TaskPieces.Load(),
		Retries: sent.Retries.Load(), Conflicts: sent.Conflicts.Load(), Throttles: sent.Throttles.Load(),
	}
}

// slots hands every Process call under way a number of its own, so that they write to different accumulators.
type slots struct{ taken atomic.Uint64 }

func (s *slots) take() (slot int, release func()) {
	for {
		taken := s.taken.Load()
		slot = bits.TrailingZeros64(^taken)
		if slot == 64 { // all are taken: share one
			return slot - 1, func() {}
		}
		if bit := uint64(1) << slot; s.taken.CompareAndSwap(taken, taken|bit) {
			return slot, func() { s.taken.And(^bit) }
		}
	}
}

// AnyEpoch agrees to a change of whatever rules are in force.
const AnyEpoch = registry.AnyEpoch

// Open describes the table, creates the state table if it is missing, and registers
// new rules. It returns a *SetupError if the surroundings are not as they must be, a
// *RulesChangedError if the file changes or removes rules in force, and a
// *rules.Problems if templates do not suit the table's keys.
func Open(ctx context.Context, cfg Config) (*Engine, error) {
	return open(ctx, cfg, registry.Options{})
}

// OpenChanging is Open, and has the rules that the file changes or removes retire. The caller agreed to the Comparison of
// agreedEpoch, 0 for none. If other rules are in force by now, it returns a *RulesChangedError.
func OpenChanging(ctx context.Context, cfg Config, agreedEpoch int) (*Engine, error) {
	return open(ctx, cfg, registry.Options{AgreedEpoch: agreedEpoch})
}

// OpenAttached creates and registers nothing. If the state table does not know all the rules, it returns an error of Open.
func OpenAttached(ctx context.Context, cfg Config) (*Engine, error) {
	return open(ctx, cfg, registry.Options{Attach: true})
}

// The background work that waits for the budget, as `status` and metrics name it.
const (
	fanOuts = "fan-outs"
	seeds   = "seeding"
	replays = "replay"
	repairs = "repairs"
)

// itemUnits is about how many write units rederiving an item takes.
const itemUnits = 10

// background returns the engine as some background work uses it: what it writes is charged to the budget as that work's.
func (e *Engine) background(work string) *Engine {
	other := *e
	other.connect(e.tables.For(work), *e.host)
	return &other
}

// connect gives the engine its tables, and what writes to them.
func (e *Engine) connect(ts *table.Tables, h host.Host) {
	e.tables, e.host = ts, &h
	h.Tables, h.Targets = ts, &target.Writer{Tables: ts, ParkRefused: e.host.ParkRefused}
	e.folding = &folding.Folding{Tables: ts, Planner: e.planner, Registry: e.registry}
	e.ledger = ledger.New(e.host, e.registry.RaiseEpochAbove)
	h.Ledger = e.ledger
	e.sweep = &sweep.Sweep{Host: e.host, Kinds: Kinds, Entry: e.ledger.Entry, Rederive: func(ctx context.Context, items []change.Key) error {
		return e.rederive(ctx, items, plan.Itself, nil, nil)
	}}
}

// inPieces does background work on items, in pieces that the budget can pay.
func (e *Engine) inPieces(ctx context.Context, keys []change.Key, do func([]change.Key) error) error {
	for len(keys) > 0 {
		n, end, err := e.host.BeginPiece(ctx, len(keys), itemUnits)
		if err != nil {
			return err
		}
		err = do(keys[:n])
		if end(); err != nil {
			return err
		}
		keys = keys[n:]
	}
	return nil
}

// Budget returns how this engine keeps to its budget.
func (e *Engine) Budget() BudgetStats { return e.host.BudgetStats() }

// engineRule stands for writes that serve no rule alone.
const engineRule = "(engine)"

// RuleStats returns the counts of every rule, sorted by name.
func (e *Engine) RuleStats() []RuleStats {
	byName := map[string]RuleStats{engineRule: {Rule: engineRule}}
	for _, r := range e.planner.Set.Rules {
		byName[r.Name] = RuleStats{Rule: r.Name}
	}
	for id, counts := range e.tables.WrittenFor() {
		name := cmp.Or(e.planner.NameOf(id), engineRule)
		before := byName[name] // of a former rule, or of one that has its name
		byName[name] = RuleStats{Rule: name, Writes: before.Writes + counts.Writes, WriteUnits: before.WriteUnits + counts.Units}
	}
	return slices.SortedFunc(maps.Values(byName), func(a, b RuleStats) int { return cmp.Compare(a.Rule, b.Rule) })
}

// Matches counts the items and records that this engine has looked at since Open, by their entities.
func (e *Engine) Matches() Matches { return e.seen.Matches(e.planner.Set) }

// MissingTargets returns, by rule, which targets do not exist as far as this engine knows.
func (e *Engine) MissingTargets() []MissingTargets { return e.seen.MissingTargets() }

// LookForTargets looks at targets that were missing once more, at most about a thousand a rule. Call it after a pass or a drain.
// whole: this process worked off every item of the table in that pass, for all rules.
func (e *Engine) LookForTargets(ctx context.Context, whole bool) ([]MissingTargets, error) {
	return e.seen.LookForTargets(ctx, whole)
}

// RecordMissing writes the missing targets to the state table if they changed; without atOnce at most once a minute.
func (e *Engine) RecordMissing(ctx context.Context, atOnce bool) error {
	return e.seen.RecordMissing(ctx, atOnce)
}

// RecordLeaseTable writes to the registry which lease table the processes that follow the stream use; inspect.ReadOrigins reads it. Call it
// once that table exists: then no crash leaves the name of a table that never was. It returns ErrEpochMoved if the state table was made
// anew. besideFunction: the processes leave every rule that is not hot to a Lambda function.
func (e *Engine) RecordLeaseTable(ctx context.Context, leaseTable string, besideFunction bool) error {
	tableRow, err := registry.ReadTable(ctx, e.tables.Reader)
	if err != nil || tableRow != nil && tableRow.Leases == leaseTable && tableRow.BesideFunction == besideFunction {
		return err
	}
	c := table.NewExpression()
	set := c.Format("SET %n = %v", state.LeasesAttribute, table.Text(leaseTable))
	if besideFunction {
		set += c.Format(", %n = %v", state.BesideFunctionAttribute, attributes.ToTable(change.Bool(true)))
	} else {
		set += c.Format(" REMOVE %n", state.BesideFunctionAttribute)
	}
	sameState := c.Format("%n = %v", "incarnation", table.Text(e.planner.Incarnation))
	noted, err := e.tables.UpdateState(ctx, "", "noting the lease table in the registry", state.TableKey(), set, sameState, c)
	if err == nil && !noted {
		return registry.ErrEpochMoved
	}
	return err
}
