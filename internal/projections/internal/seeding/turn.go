package seeding

import (
	"context"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// A rule that is not in the file any more, or means something else there, is
// retiring until all that takes its place is live and shown: what it wrote stands.
// Then it retires, a scan of the table takes back what it wrote, and one of the state
// table what it kept there. A worker that knows only the older rules may still write
// for it, at any time: the record of that very write has it taken back.

// turn is a step of the registry under the cursor: neither it nor the rules have moved since it was read.
// A higher counter of lives makes every engine read the rules again.
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

// turns is turn with any number of rows: before the last step the cursor stands at through,
// from where all is done again that a crash leaves undone.
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

// goLive turns the cursor to showing and marks a level's rules live, at once. A worker that
// applies records reads the registry afterwards: either it finds the rules
// live and rolls up, or the scan that follows here sees what it applied.
func (s *Seeding) goLive(ctx context.Context, cursor state.Cursor) error {
	show := state.Cursor{Level: cursor.Level, Phase: state.PhaseShow}
	if !s.showsAnything(show) {
		show = state.Cursor{}
	}
	var rows []ddb.TransactWriteItem
	for _, b := range s.Planner.InForce {
		if b.Rule.Level == cursor.Level && !b.Live.Load() {
			rows = append(rows, s.Registry.RuleWrite(b.ID, "state", table.Text(state.Live)))
		}
	}
	through := show
	if through.Phase == state.PhaseShow { // a worker that shows meanwhile what is live by then must not end what shows the rest
		through.Level = state.EveryLevel
	}
	return s.turns(ctx, "bringing rules to life", cursor, through, show, rows)
}

// retire turns the cursor to cleaning and marks former rules retired, at once. As with
// going live, a worker that applies records reads the registry afterwards: either it
// finds the rules retired, and takes back what its records tell of, or what they
// tell of was written before, and the scan that follows here sees it.
func (s *Seeding) retire(ctx context.Context, cursor state.Cursor) error {
	var rows []ddb.TransactWriteItem
	for _, b := range s.Planner.Formers() {
		if !b.Retired.Load() {
			rows = append(rows, s.Registry.RuleWrite(b.ID, "state", table.Text(state.Retired)))
		}
	}
	return s.turns(ctx, "retiring rules", cursor, state.Cursor{}, state.Cursor{Level: state.EveryLevel, Phase: state.PhaseClean}, rows)
}

// endFormers notes that nothing is left of retired rules. What a worker that slept
// writes for them later is taken back by its record; what it adds to the state table
// is never read, and goes with the next sweep.
func (s *Seeding) endFormers(ctx context.Context, cursor state.Cursor) error {
	var rows []ddb.TransactWriteItem
	for _, b := range s.Planner.Formers() {
		if b.Retired.Load() && !b.Cleaned.Load() {
			rows = append(rows, s.Registry.RuleWrite(b.ID, "cleaned", table.Number(int64(s.Planner.Epoch))))
		}
	}
	return s.turns(ctx, "ending former rules", cursor, cursor, state.Cursor{}, rows)
}
