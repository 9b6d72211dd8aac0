package seeding

import (
	"context"
	"errors"
	"slices"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/registry"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/rules"
)

// Seeding brings the rules of a registry into force.
type Seeding struct {
	Tables   *table.Tables
	Planner  *plan.Planner
	Registry *registry.Registry
}

// NextPass returns the cursor of the next pass, and how many passes are left with it. If only retiring comes next, it marks the former
// rules retired first: that needs no pass.
func (s *Seeding) NextPass(ctx context.Context) (state.Cursor, int, error) {
	for {
		var cursor state.Cursor // read under the registry, so that it fits the rules that are live
		err := s.Registry.Under(ctx, func() (err error) {
			cursor, err = ReadCursor(ctx, s.Tables.Reader, s.Planner)
			return err
		})
		if err != nil {
			return cursor, 0, err
		}
		left := s.planNextPass(&cursor)
		if cursor.Phase != state.PhaseRetire {
			return cursor, left, nil
		}
		if err := s.retire(ctx, cursor); err != nil && !errors.Is(err, ErrCursorMoved) {
			return cursor, 0, err
		}
	}
}

// planNextPass turns the cursor to the next pass, unless it is in the middle of it, and returns how many passes are left.
func (s *Seeding) planNextPass(cursor *state.Cursor) int {
	var levels []int
	left := 0
	for _, b := range s.Planner.InForce {
		level := b.Rule.Level
		if IsUncounted(b) || !b.Live.Load() && !b.Rule.Folds() {
			levels = append(levels, level)
		}
	}
	slices.Sort(levels)
	levels = slices.Compact(levels)
	for _, level := range levels {
		for _, phase := range []state.Phase{state.PhaseDerive, state.PhaseCount} {
			if s.waits(level, phase) {
				left++
			}
		}
	}
	for _, level := range levels {
		if s.showsAnything(state.Cursor{Level: level}) {
			left++
		}
	}
	var retiring, uncleaned bool // of former rules: some are still to retire; what retired ones wrote is still to be taken back
	for _, b := range s.Planner.Formers() {
		retiring = retiring || !b.Retired.Load()
		uncleaned = uncleaned || b.Retired.Load() && !b.Cleaned.Load()
	}
	if retiring || uncleaned {
		left += 2
	}
	start := func(phase state.Phase, level int) {
		if cursor.Phase != phase || cursor.Level != level {
			*cursor = state.Cursor{Level: level, Phase: phase, Changes: cursor.Changes}
		}
	}
	switch {
	case cursor.Phase == state.PhaseShow && s.showsAnything(*cursor):
		left++
	case len(levels) > 0 && s.waits(levels[0], state.PhaseDerive):
		start(state.PhaseDerive, levels[0])
	case len(levels) > 0:
		start(state.PhaseCount, levels[0])
	case retiring:
		start(state.PhaseRetire, state.EveryLevel)
	case uncleaned && cursor.Phase == state.PhaseSweep:
		left--
	case uncleaned:
		start(state.PhaseClean, state.EveryLevel)
	}
	return left
}

// IsUncounted reports whether a rule is hot, and its newest generation is not counted yet.
func IsUncounted(b *plan.Binding) bool {
	return b.Rule.Folds() && b.Counted.Load() != b.Generation.Load()
}

// waits reports whether some rule of a level waits for the pass of a phase.
func (s *Seeding) waits(level int, phase state.Phase) bool {
	return slices.ContainsFunc(s.Planner.InForce, func(b *plan.Binding) bool { return b.Rule.Level == level && WaitsFor(b, phase) })
}

// WaitsFor reports whether a rule waits for the pass of a phase, derive or count. For a hot rule, the pass derives the
// locators of its targets only.
func WaitsFor(b *plan.Binding, phase state.Phase) bool {
	switch {
	case phase == state.PhaseCount:
		return IsUncounted(b)
	case b.Rule.Folds():
		return phase == state.PhaseDerive && b.Rule.ByUnique && !b.Live.Load() && !b.Located.Load()
	}
	return phase == state.PhaseDerive && !b.Live.Load()
}

// End ends the cursor's pass, provided that the cursor has not moved.
func (s *Seeding) End(ctx context.Context, cursor state.Cursor) error {
	switch cursor.Phase {
	case state.PhaseDerive, state.PhaseCount:
		return s.goLive(ctx, cursor)
	case state.PhaseClean:
		return s.store(ctx, state.Cursor{Level: state.EveryLevel, Phase: state.PhaseSweep, Changes: cursor.Changes})
	case state.PhaseSweep:
		return s.endFormers(ctx, cursor)
	}
	return s.store(ctx, state.Cursor{Changes: cursor.Changes}) // no scan is under way any more
}

// Complete calls end for a pass after any processes worked off all its items, unless another process has ended it.
func (s *Seeding) Complete(ctx context.Context, text string, end func(context.Context, state.Cursor) error) error {
	p, err := ParsePass(text)
	if err != nil || p.Epoch == 0 {
		return err
	}
	if over, err := p.IsOver(s.Planner.Epoch); err != nil || over {
		return err
	}
	for {
		cursor, left, err := s.NextPass(ctx)
		if err != nil || left == 0 || s.PassOf(cursor).String() != text {
			return err
		}
		if err := end(ctx, cursor); !errors.Is(err, ErrCursorMoved) {
			return err
		}
	}
}

// PassOf is the pass of a cursor that was aimed.
func (s *Seeding) PassOf(c state.Cursor) Pass {
	p := Pass{Phase: c.Phase, Epoch: s.Planner.Epoch, Level: c.Level}
	for _, b := range s.Planner.InForce {
		if c.Phase == state.PhaseShow && c.IsFor(b.Rule) && b.Live.Load() && !IsUncounted(b) {
			p.ReadyRules++
		}
	}
	return p
}

func (s *Seeding) showsAnything(cursor state.Cursor) bool {
	return slices.ContainsFunc(s.Planner.Set.Entities, func(ent *rules.Entity) bool {
		return slices.ContainsFunc(ent.Displays, cursor.IsFor)
	})
}

// ErrCursorMoved says that another process seeds too: its place counts.
var ErrCursorMoved = errors.New("another process moved the seeding cursor")

// ReadCursor reads the stored cursor.
func ReadCursor(ctx context.Context, rd *table.Reader, p *plan.Planner) (state.Cursor, error) {
	rows, err := rd.ReadState(ctx, "reading the seeding cursor", []table.Key{state.CursorKey()})
	if err != nil {
		return state.Cursor{}, err
	}
	return state.ReadCursor(rd, p, rows[state.CursorKey()]), nil
}

// Save saves the place of a cursor. It returns ErrCursorMoved if another process has moved it.
func (s *Seeding) Save(ctx context.Context, cursor *state.Cursor) error {
	err := s.store(ctx, *cursor)
	cursor.Changes = state.Raised(cursor.Changes)
	return err
}

func (s *Seeding) store(ctx context.Context, cursor state.Cursor) error {
	c := table.NewExpression()
	saved, err := s.Tables.PutState(ctx, "", "saving the seeding cursor", cursor.Row(s.Planner), state.CursorIs(c, cursor), c)
	if err == nil && !saved {
		return ErrCursorMoved
	}
	return err
}

// Note shows those who inspect the state table how far a pass is, unless another process has moved the cursor. The cursor does not move:
// the pass begins anew with the next process.
func (s *Seeding) Note(ctx context.Context, cursor state.Cursor) error {
	c := table.NewExpression()
	_, err := s.Tables.PutState(ctx, "", "noting how far a pass is", cursor.Note(s.Planner), state.CursorIs(c, cursor), c)
	return err
}

// A rule that is not in the file any more is retiring until all that takes its place is live and shown: what it wrote stands. Then it
// retires, and scans of both tables take back what it wrote. A worker that knows only older rules may still write for it at any
// time: the record of that very write has it taken back.

// turn is a step of the registry, if neither cursor nor rules have moved. A higher counter of lives has every engine read the rules again.
func (s *Seeding) turn(ctx context.Context, doing string, from, to state.Cursor, rows []ddb.TransactWriteItem) error {
	c := table.NewExpression()
	raise := c.Format("ADD %n %v", "live", table.Number(1))
	same := s.Registry.RulesStand(c)
	items := []ddb.TransactWriteItem{s.Tables.UpdatePart(state.TableKey(), raise, same, c)}
	c = table.NewExpression()
	unmoved := state.CursorIs(c, from)
	to.Changes = from.Changes
	items = append(items, s.Tables.PutPart(to.Row(s.Planner), unmoved, c))
	err := s.Tables.Transact(ctx, doing, []string{""}, append(items, rows...))
	if table.LostRace(err) {
		return ErrCursorMoved // or the epoch, which the next reading shows
	}
	return err
}

// turnRowsMax is how many rules one step of the registry can write.
const turnRowsMax = plan.TransactActionsMax - 2

// turns is turn with any number of rows: before the last step the cursor stands at through, from where a crash is made good.
func (s *Seeding) turns(ctx context.Context, doing string, from, through, to state.Cursor, rows []ddb.TransactWriteItem) error {
	for ; len(rows) > turnRowsMax; rows = rows[turnRowsMax:] {
		if err := s.turn(ctx, doing, from, through, rows[:turnRowsMax]); err != nil {
			return err
		}
		through.Changes = state.Raised(from.Changes)
		from = through
	}
	return s.turn(ctx, doing, from, to, rows)
}

// goLive turns the cursor to showing and marks a level's rules live, at once. A worker reads the registry after its records: either it
// finds the rules live and rolls up, or the scan that follows sees what it applied.
func (s *Seeding) goLive(ctx context.Context, cursor state.Cursor) error {
	show, alive := state.Cursor{Level: cursor.Level, Phase: state.PhaseShow}, false
	var rows []ddb.TransactWriteItem
	for _, b := range s.Planner.InForce {
		switch {
		case b.Rule.Level != cursor.Level || !WaitsFor(b, cursor.Phase):
		case cursor.Phase == state.PhaseDerive && b.Rule.Folds():
			rows = append(rows, s.Registry.RuleWrite(b.ID, state.LocatedAttribute, table.Number(1)))
		default:
			rows, alive = append(rows, s.Registry.LiveWrite(b)), true
		}
	}
	if !alive || !s.showsAnything(show) {
		show = state.Cursor{}
	}
	through := show
	if through.Phase == state.PhaseShow { // a worker that shows meanwhile what is live by then must not end what shows the rest
		through.Level = state.EveryLevel
	}
	return s.turns(ctx, "bringing rules to life", cursor, through, show, rows)
}

// retire turns the cursor to cleaning and marks former rules retired, at once. A worker that reads the registry afterwards finds them
// retired and takes back what its records tell of, or the scan that follows here sees it.
func (s *Seeding) retire(ctx context.Context, cursor state.Cursor) error {
	var rows []ddb.TransactWriteItem
	for _, b := range s.Planner.Formers() {
		if !b.Retired.Load() {
			rows = append(rows, s.Registry.RuleWrite(b.ID, "state", table.Text(state.Retired)))
		}
	}
	return s.turns(ctx, "retiring rules", cursor, state.Cursor{}, state.Cursor{Level: state.EveryLevel, Phase: state.PhaseClean}, rows)
}

// endFormers notes that nothing is left of retired rules. The record of a late write has it taken back; rows of the state table that
// come later are never read, and go with the next sweep.
func (s *Seeding) endFormers(ctx context.Context, cursor state.Cursor) error {
	var rows []ddb.TransactWriteItem
	for _, b := range s.Planner.Formers() {
		if b.Retired.Load() && !b.Cleaned.Load() {
			rows = append(rows, s.Registry.RuleWrite(b.ID, "cleaned", table.Number(int64(s.Planner.Epoch))))
		}
	}
	return s.turns(ctx, "ending former rules", cursor, cursor, state.Cursor{}, rows)
}
