package projections

import (
	"context"

	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/projections/internal/target"
)

// takeOff takes what former rules, or rules of a former entity, wrote off items that
// still carry it. An item that is what it was again by now keeps it.
func (w *work) takeOff(ctx context.Context, leftovers *plan.OrderedMap[plan.ItemRule, plan.Leftover]) {
	for id, left := range leftovers.All() {
		w.Ended(ctx, left.First, id.Binding, id.Key, w.takeOffOne(ctx, id, left))
	}
}

// takeOffOne judges the item anew if another writer has changed it meanwhile.
func (w *work) takeOffOne(ctx context.Context, id plan.ItemRule, left *plan.Leftover) error {
	return table.Contend(ctx, "taking "+id.Rule.Name+" off "+id.Key.String(), func() (table.Round, error) {
		if left.Whole {
			return table.Finished, host.MakerOf(id.Rule).Drop(ctx, w.host, id, left)
		}
		ended, current, err := w.host.Targets.Write(ctx, w.takeOffNames(id, left))
		if err != nil || ended != target.RaceLost || current == nil {
			return table.Finished, err
		}
		left = w.planner.Again(id, left, current)
		return table.FinishedIf(left == nil), nil
	})
}

// takeOffNames takes attributes and stamp off an item, or puts back what was there
// before, if it holds in them what was seen.
func (w *work) takeOffNames(id plan.ItemRule, left *plan.Leftover) *target.Write {
	t := target.On(id.Binding, "taking "+id.Rule.Name+" off "+id.Key.String(), id.Key)
	t.Condition = t.Format("attribute_exists(%n)", w.tables.PartitionKey)
	t.Holds(left.Last, id.Stamp)
	for _, b := range left.Beside {
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
