package registry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/projections"
)

// Registry binds rules to what the state table knows of them, and notices when other rules come into force.
type Registry struct {
	Planner *plan.Planner // of the rules in force
	Found   projections.Description

	tables      *table.Tables
	changesSeen atomic.Int64 // Table.Live as last read
	// reading is full while a goroutine takes over what the rules' rows say. It is no mutex: the holder waits for answers.
	reading chan struct{}
	now     func() time.Time
}

// AnyEpoch is the agreed epoch with which rules are changed whatever is in force.
const AnyEpoch = -1

// Options say how rules come into force.
type Options struct {
	Rules       *rules.Set
	AgreedEpoch int  // the rules of this epoch may be changed and removed; 0: none may
	Attach      bool // the state table must be there and know these rules; nothing is created or registered
	Now         func() time.Time
	Incarnation func() string // returns a name for a new state table that no other has
	Creating    func()        // called while DynamoDB makes the state table
}

// Open makes sure of the state table and binds the rules to what the
// registry knows of them.
func Open(ctx context.Context, ts *table.Tables, opts Options) (*Registry, error) {
	reg := &Registry{tables: ts, Planner: &plan.Planner{CanExist: ts.CanExist}, now: opts.Now, reading: make(chan struct{}, 1)}
	early := &earlyRead{}
	early.group.Go(func() { early.own, early.known, early.err = Read(ctx, ts.Reader) })
	defer early.group.Wait()
	tableID, err := Describe(ctx, ts, opts.Rules)
	if err != nil {
		return nil, err
	}
	return reg, reg.open(ctx, opts, tableID, early)
}

// earlyRead reads the registry while the tables are described. It counts only if it found one: otherwise those may bring the reason.
type earlyRead struct {
	group sync.WaitGroup
	own   *state.Table
	known map[string]state.Rule
	err   error
}

// take returns what was read early, once, if that is a registry; otherwise it reads.
func (e *earlyRead) take(ctx context.Context, rd *table.Reader) (*state.Table, map[string]state.Rule, error) {
	e.group.Wait()
	own, known := e.own, e.known
	e.own = nil
	if own != nil && e.err == nil {
		return own, known, nil
	}
	return Read(ctx, rd)
}

func (reg *Registry) open(ctx context.Context, opts Options, tableID string, early *earlyRead) error {
	created, err := reg.tables.EnsureStateTable(ctx, opts.Attach, opts.Creating)
	if err != nil {
		return err
	}
	reg.Found = projections.Description{StateTable: reg.tables.StateTable, StateTableCreated: created}
	return table.Contend(ctx, "registering the rules in "+reg.tables.StateTable, func() (table.Round, error) {
		own, known, err := early.take(ctx, reg.tables.Reader)
		if own != nil { // a remedy for the registry would be wrong for that of another table
			if err := CheckOwner(reg.tables, own, tableID); err != nil {
				return table.Lost, err
			}
		}
		if err != nil {
			return table.Lost, err
		}
		if own == nil {
			return table.Lost, reg.createRegistry(ctx, opts, tableID)
		}
		reg.Planner.Incarnation, reg.Planner.Epoch = own.Incarnation, own.Epoch
		ended, err := reg.bindRules(ctx, opts, known, own.Live)
		if ended == table.Advanced && opts.AgreedEpoch > 0 { // many rules are registered in several steps, each by itself whole
			opts.AgreedEpoch = reg.Planner.Epoch + 1 // this engine's own step; another process's is not agreed to
		}
		return ended, err
	})
}

// CheckOwner refuses a state table that belongs to another table.
func CheckOwner(ts *table.Tables, own *state.Table, tableID string) error {
	if own.ID == tableID {
		return nil
	}
	return &table.SetupError{
		Problem: fmt.Sprintf("state table %s belongs to another table, %s (id %s; %s has the id %s)", ts.StateTable, own.Name, own.ID, ts.Table,
			tableID),
		Remedy: "name another one with --state-table, or delete it if that table is gone",
	}
}

// ErrUnregistered is wrapped by what Unregistered returns.
var ErrUnregistered = errors.New("nothing is registered")

// Unregistered says that there is no state table, by the error that tells, or that it is empty.
func Unregistered(stateTable string, missing error) error {
	problem := fmt.Sprintf("state table %s is empty", stateTable)
	if missing != nil {
		problem = fmt.Sprintf("there is no state table %s", stateTable)
	}
	return &table.SetupError{Problem: problem, Err: errors.Join(ErrUnregistered, missing),
		Remedy: "nothing has run on this table yet; start `dynamill run`, or check --table, --state-table and --region"}
}

// createRegistry writes a new registry, unless another process is faster. It refuses a table without one that has items in it.
func (reg *Registry) createRegistry(ctx context.Context, opts Options, tableID string) error {
	if opts.Attach {
		return &table.SetupError{Problem: fmt.Sprintf("state table %s is empty", reg.tables.StateTable), Remedy: "start `dynamill run` first"}
	}
	holds, err := reg.tables.HoldsItems(ctx)
	if err != nil {
		return err
	}
	if holds {
		if own, err := ReadTable(ctx, reg.tables.Reader); err != nil || own != nil {
			return err
		}
		return &table.SetupError{
			Problem: fmt.Sprintf("table %s holds items, but not dynamill's state", reg.tables.StateTable),
			Remedy:  "name another one with --state-table, or leave it out",
		}
	}
	if err := reg.tables.EnsureTTL(ctx); err != nil {
		return err
	}
	row := state.Table{Name: reg.tables.Table, ID: tableID, Incarnation: opts.Incarnation(), Created: reg.now()}.Row()
	_, err = reg.tables.PutState(ctx, "", "creating the registry", row, "attribute_not_exists(pk)", table.NewExpression())
	return err
}

// Read reads the registry: the table's own item, nil if there is none,
// and one for each rule by id; also those of a registry that is refused, with the error. A query is not one moment's picture. The table's
// item is therefore read before the rules, so that whatever it says is live is
// found live, and again after them, should more rules have been registered.
func Read(ctx context.Context, rd *table.Reader) (*state.Table, map[string]state.Rule, error) {
	for {
		row, err := rd.GetState(ctx, readingTable, state.TableKey())
		if err != nil || row == nil {
			return nil, nil, err
		}
		rows, err := readRules(ctx, rd)
		if err != nil {
			return nil, nil, err
		}
		after, err := ReadTable(ctx, rd)
		if err != nil {
			return nil, nil, err
		}
		own := state.ReadTable(row)
		if after == nil || after.Epoch != own.Epoch {
			continue
		}
		known := make(map[string]state.Rule, len(rows))
		for id, r := range rows {
			known[id] = state.ReadRule(r)
		}
		return own, known, state.CheckRegistry(rd.StateTable, row, rows)
	}
}

const readingTable = "reading the rules epoch"

// ReadTable reads the row of the table; nil if there is no registry.
func ReadTable(ctx context.Context, rd *table.Reader) (*state.Table, error) {
	row, err := rd.GetState(ctx, readingTable, state.TableKey())
	return state.ReadTable(row), err
}

func readRules(ctx context.Context, rd *table.Reader) (map[string]table.Row, error) {
	c := table.NewExpression()
	in := rd.StateQuery(state.RulesCondition(c), c)
	known := map[string]table.Row{}
	err := rd.QueryPages(ctx, "reading the registry", in, func(rows []table.Row) error {
		for _, r := range rows {
			known[state.RuleID(r)] = r
		}
		return nil
	})
	return known, err
}

// errRegistryChanged says that the registry changed since this engine last read it.
var errRegistryChanged = errors.New("the registry changed meanwhile")

// check makes sure that the rules stand as this engine took them to: records are not done under rules that are not all there are
// (ErrEpochMoved), nor without the roll-ups of rules that went live or the taking back of those that retired meanwhile
// (errRegistryChanged).
func (reg *Registry) check(ctx context.Context) error {
	own, err := CheckEpoch(ctx, reg.tables.Reader, reg.Planner)
	if err != nil || own.Live == reg.changesSeen.Load() {
		return err
	}
	// One after another: an answer that came late would put back what a newer one told.
	select {
	case reg.reading <- struct{}{}:
		defer func() { <-reg.reading }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if own.Live < reg.changesSeen.Load() { // it came late
		if own, err = CheckEpoch(ctx, reg.tables.Reader, reg.Planner); err != nil {
			return err
		}
	}
	if own.Live == reg.changesSeen.Load() {
		return errRegistryChanged // another goroutine has taken it over
	}
	known, err := readRules(ctx, reg.tables.Reader)
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(known)) {
		item := state.ReadRule(known[id])
		if b := reg.Planner.ByID(id); b != nil && item.State == state.Live {
			b.Counted.Store(int64(item.Counted))
			b.Live.Store(true)
		}
		if b := reg.Planner.ByID(id); b != nil {
			b.Located.Store(item.Located)
			if err := reg.readCountExtents(ctx, b); err != nil {
				return err
			}
		}
		if b := reg.Planner.Former(id); b != nil {
			b.Retired.Store(item.State == state.Retired)
			b.Cleaned.Store(item.Cleaned)
		}
	}
	reg.changesSeen.Store(own.Live)
	return errRegistryChanged
}

// CheckEpoch reads the registry's row of the table; ErrEpochMoved if it is of newer rules than a planner's, or of another state table.
func CheckEpoch(ctx context.Context, rd *table.Reader, p *plan.Planner) (*state.Table, error) {
	own, err := ReadTable(ctx, rd)
	if err != nil {
		return nil, err
	}
	if !own.Is(p.Incarnation, p.Epoch) {
		return nil, ErrEpochMoved
	}
	return own, nil
}

// RaiseEpochAbove is called for newer rules' versions, and returns ErrEpochMoved. If the registry has none so new, a late worker of a lost
// state table wrote it: the epoch is raised above, so that all it left counts as of older rules.
func (reg *Registry) RaiseEpochAbove(ctx context.Context, v stamp.Version) error {
	if err := reg.check(ctx); err != nil && !errors.Is(err, errRegistryChanged) {
		return err
	}
	above := max(v.RulesEpoch(), reg.Planner.Epoch) + 1
	if above > stamp.EpochMax {
		return fmt.Errorf("a ledger entry of state table %s has rules epoch %d, and no higher one is possible: delete the entry, then run "+
			"`dynamill verify --repair`", reg.tables.StateTable, v.RulesEpoch())
	}
	c := table.NewExpression()
	set := c.Format("SET %n = %v", "epoch", table.Number(int64(above)))
	_, err := reg.tables.UpdateState(ctx, "", "raising the rules epoch above that of a lost state table", state.TableKey(), set,
		reg.RulesStand(c), c)
	if err != nil {
		return err
	}
	return ErrEpochMoved
}

// Under does work, and repeats it if the registry changed meanwhile.
func (reg *Registry) Under(ctx context.Context, do func() error) error {
	for {
		seen := reg.changesSeen.Load()
		if err := do(); err != nil {
			return err
		}
		if err := reg.checkDone(ctx); err != nil && !errors.Is(err, errRegistryChanged) {
			return err
		}
		if reg.changesSeen.Load() == seen {
			return nil
		}
	}
}

// checkTime bounds the check of work whose time has run out.
const checkTime = 200 * time.Millisecond

// checkDone checks under which rules work was done. If the work's time is up, the check has a little of its own: without a check, nothing
// of the work would count, and it would be done again from its beginning.
func (reg *Registry) checkDone(ctx context.Context) error {
	err := reg.check(ctx)
	if err == nil || ctx.Err() == nil {
		return err
	}
	brief, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkTime)
	defer cancel()
	return reg.check(brief)
}

// ErrEpochMoved is returned when another process has registered newer rules, or has begun to recount rules. The records are not done;
// the process must stop and be started again with the new rule file.
var ErrEpochMoved error = epochMovedError{}

type epochMovedError struct{}

func (epochMovedError) Error() string {
	return "another process has registered newer rules for this table, or has begun to recount rules: restart with the current rule file"
}

// StopReading tells a stream reader that trying again is of no use.
func (epochMovedError) StopReading() bool { return true }
