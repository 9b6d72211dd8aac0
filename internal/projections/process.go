package projections

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/groups"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/leftovers"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/projections/internal/target"
)

// Process applies records. records[:done] are durable: each roll-up is done, is put off to WorkTasks by a row of the state table, or is
// left to the seeding of a rule that is not live. err says why the next record is not. Records of one item must come in their order;
// repetition, overlapping calls and any cut into batches are harmless (promise 2).
func (e *Engine) Process(ctx context.Context, records []change.Record) (done int, err error) {
	return e.process(ctx, records, nil)
}

// process is Process of records from a shard; nil: the driver does not tell.
func (e *Engine) process(ctx context.Context, records []change.Record, from *host.Shard) (done int, err error) {
	if len(records) == 0 {
		return 0, nil
	}
	var pl *plan.Changes
	var w *application
	err = e.registry.Under(ctx, func() error {
		pl = e.planner.Plan(records, leftovers.PlanRecord)
		w = e.apply(ctx, pl, len(records), from)
		return nil
	})
	if err == nil && from != nil {
		err = e.recountLost(ctx, from)
	}
	if err != nil {
		return 0, err
	}
	e.host.Counters.Records.Add(int64(w.Done))
	e.host.Counters.Relevant.Add(int64(pl.Relevant))
	seen := pl.Seen
	if w.Done < len(records) { // the others come again
		seen = e.planner.See(records[:w.Done])
	}
	e.host.Counters.Unmatched.Add(seen.Unmatched)
	e.seen.AddRecords(seen)
	return w.Done, w.Err
}

// application is the application of one plan.
type application struct {
	*Engine
	*host.Run

	waiting []*plan.Move // whose due marks wait only for rules that are not live
}

// apply applies the parts of a plan for so many records. Any order is correct; this one saves requests: a roll-up after the moves
// sees all their sums, and what makes items comes before what writes on them.
func (e *Engine) apply(ctx context.Context, pl *plan.Changes, records int, from *host.Shard) *application {
	slot, release := e.slots.take()
	defer release()
	w := &application{Engine: e, Run: &host.Run{Host: e.host, Suffix: e.suffix + slot, Done: records, MayPutOff: records > 0, Shard: from}}
	w.applyMoves(ctx, pl)
	for _, family := range slices.Backward(host.FamiliesWith[host.Kind](Kinds)) {
		family.Apply(ctx, w.Run, pl)
	}
	w.rollUp(ctx, pl)
	w.removeLeftovers(ctx, leftovers.Found(pl))
	return w
}

// applyMoves applies the ledger moves, and adds the roll-ups that they ask for to the plan.
func (w *application) applyMoves(ctx context.Context, pl *plan.Changes) {
	var moves []*plan.Move
	for _, mv := range pl.Moves.All() {
		moves = append(moves, mv)
	}
	if len(moves) == 0 {
		return
	}
	broken := map[*plan.Move]bool{}
	w.ledger.Apply(ctx, moves, w.Suffix, func(mv *plan.Move, err error) {
		broken[mv] = true
		w.Failed(mv.First, err)
	})
	for _, mv := range moves {
		if !broken[mv] {
			pl.AddRollups(mv, mv.First)
		}
	}
}

// rollUp brings up to date, once, what several sources make together. The marks of rules that are not live wait.
func (w *application) rollUp(ctx context.Context, pl *plan.Changes) {
	keptMarks := map[*plan.Move]bool{}
	notShown := func(g plan.GroupRef, err error) {
		ru, waits := pl.Rollups.Of(g), errors.Is(err, host.ErrNotLive)
		if !waits {
			w.Failed(ru.First, err)
		}
		for _, mv := range ru.Marks {
			if waits && !slices.Contains(w.waiting, mv) {
				w.waiting = append(w.waiting, mv)
			}
			keptMarks[mv] = true
		}
	}
	rolledUp := false // the groups of all families that roll up together
	for _, family := range slices.Backward(host.FamiliesWith[host.Grouper](Kinds)) {
		if groups.ShowsGroups(family) && rolledUp {
			continue
		}
		rolledUp = rolledUp || groups.ShowsGroups(family)
		refs := groupsOf(family, pl)
		if w.MayPutOff {
			left, waiting, errs := w.PutOff(ctx, refs, pl)
			for i, err := range errs {
				if err != nil {
					notShown(waiting[i], err)
				}
			}
			refs = left
		}
		for i, err := range family.RollUp(ctx, w.Run, refs, pl) {
			if err != nil {
				notShown(refs[i], err)
			} else if pl.Rollups.Of(refs[i]).MayWait() {
				w.NoteRolledUp(refs[i], w.MayPutOff)
			}
		}
	}
	w.clearMarks(ctx, pl, keptMarks)
	groups.TakeOffUngrouped(ctx, w.Run, pl)
}

// groupsOf are the groups of a family's rules that are to be rolled up, or those of all families whose groups are shown together.
func groupsOf(family host.Grouper, pl *plan.Changes) []plan.GroupRef {
	together := groups.ShowsGroups(family)
	refs := slices.DeleteFunc(slices.Clone(pl.Rollups.Keys()), func(g plan.GroupRef) bool {
		return !host.SameFamily(g.Rule.Kind, family) && !(together && groups.ShowsGroups(g.Rule.Kind))
	})
	slices.SortFunc(refs, func(a, b plan.GroupRef) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Group, b.Group))
	})
	return refs
}

// clearMarks clears the due marks of entries whose aggregates are all shown.
func (w *application) clearMarks(ctx context.Context, pl *plan.Changes, keptMarks map[*plan.Move]bool) {
	seen := map[*plan.Move]bool{}
	for _, ru := range pl.Rollups.All() {
		for _, mv := range ru.Marks {
			if seen[mv] || keptMarks[mv] {
				continue
			}
			seen[mv] = true
			w.Failed(mv.First, w.ledger.ClearDue(ctx, mv))
		}
	}
}

// removeLeftovers removes from items what former rules wrote, and what rules wrote before the item changed its entity. An item that is of
// its former entity again keeps it.
func (w *application) removeLeftovers(ctx context.Context, found *plan.OrderedMap[plan.ItemRule, leftovers.Leftover]) {
	for id, left := range found.All() {
		w.Ended(ctx, left.First, id.Binding, id.Key, w.removeLeftover(ctx, id, left))
	}
}

// removeLeftover removes one leftover. It judges the item anew if another writer has changed it meanwhile.
func (w *application) removeLeftover(ctx context.Context, id plan.ItemRule, left *leftovers.Leftover) error {
	return table.Contend(ctx, "taking "+id.Rule.Name+" off "+id.Key.String(), func() (table.Round, error) {
		if left.Whole {
			return table.Finished, w.deleteMadeItem(ctx, id, left)
		}
		ended, current, err := w.host.Targets.Write(ctx, w.leftoverRemoval(id, left))
		if err != nil || ended != target.RaceLost || current == nil {
			return table.Finished, err
		}
		left = leftovers.Reassess(w.planner, id, left, current)
		return table.FinishedIf(left == nil), nil
	})
}

// deleteMadeItem deletes an item that was made for a retired rule. The item carries the engine's mark and the retired rule's stamp, as they
// were seen (promise 8). It stays if a rule that makes items and has not retired has it by now.
func (w *application) deleteMadeItem(ctx context.Context, id plan.ItemRule, left *leftovers.Leftover) error {
	c := table.NewExpression()
	condition := c.Format("%n = %v", plan.MadeAttribute, table.Text(plan.MadeMark(id.Key))) + c.Same(id.Stamp, left.Last.Lookup(id.Stamp))
	context := stamp.Context(w.planner.Incarnation, id.Key, "")
	for _, b := range left.Makers {
		condition += c.Format(" AND (attribute_not_exists(%n) OR NOT begins_with(%n, %v))", b.Stamp, b.Stamp, table.Text(context))
	}
	w.Counters.Made.Add(1)
	return w.tables.DeleteItem(ctx, id.ID, "deleting an item of a former rule, "+id.Key.String(), id.Key, condition, c)
}

// leftoverRemoval is the write that takes attributes and stamp off an item, or puts back what was there before, if the item is as it was
// seen.
func (w *application) leftoverRemoval(id plan.ItemRule, left *leftovers.Leftover) *target.Write {
	t := target.On(id.Binding, "taking "+id.Rule.Name+" off "+id.Key.String(), id.Key)
	t.Condition = t.Format("attribute_exists(%n)", w.tables.PartitionKey)
	t.Holds(left.Last, id.Stamp)
	for _, b := range left.Shared {
		t.Holds(left.Last, b.Stamp)
	}
	t.Holds(left.Last, id.Rule.Writes...) // also those that stay: with the stamp goes what tells of them
	if !id.Former {
		for _, eq := range id.Rule.Target.Equals { // an item that is of the entity again keeps them
			t.Holds(left.Last, eq.Attribute)
		}
	}
	t.TakeOff(id.Stamp)
	for _, name := range left.Names {
		t.Put(name, left.Back[name])
	}
	return t
}
