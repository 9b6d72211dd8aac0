package children

import (
	"context"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// Marking is a Family whose rules act on the children of deleted parents alone. They keep no position of a living parent: the row of a
// position is there only after the parent's deletion, and is a mark of it as long as it says so. A child's reference is put before the
// mark is read, and the mark is put before the children are looked up. So either the child's fill sees the mark or the fan-out sees the
// child.
type Marking interface {
	Spreader

	// ParentChanged puts the mark of a parent that was deleted, and begins with its children; or takes it away.
	ParentChanged(ctx context.Context, w Run, id plan.ItemRule, f *FanOut) error
	// Remove acts on children of a parent whose mark was read.
	Remove(ctx context.Context, w Run, parent plan.ItemRule, mark table.Row, some []change.Key) error
	// MarkedAgain leaves the children of a parent to a task, if the parent may be marked by a worker that left none.
	MarkedAgain(ctx context.Context, w Run, parent plan.ItemRule) error
	// RederiveParent plans what records of an item that come late tell of the item as a parent.
	RederiveParent(pl *plan.Changes, b *plan.Binding, it *plan.Item)
	// MarkWords tell people of a mark.
	MarkWords(b *plan.Binding, parent change.Key, mark table.Row) string
}

// keepsDeletionMarks reports whether a rule keeps marks of deleted parents.
func keepsDeletionMarks(b *plan.Binding) bool {
	_, is := b.Family.(Marking)
	return is
}

// removeMarked has the family act on those children whose parents are marked. One at a time acts on the children of one parent.
func (w Run) removeMarked(ctx context.Context, family Marking, open []*childFill) error {
	var keys []table.Key
	for _, ch := range open {
		keys = append(keys, state.ParentKey(ch.Binding, ch.Parent))
	}
	rows, err := w.Tables.ReadState(ctx, "reading the marks of deleted parents", keys)
	if err != nil {
		return err
	}
	families := plan.OrderedMap[plan.ItemRule, []*childFill]{}
	for i, ch := range open {
		if state.IsMarked(rows[keys[i]]) {
			some := families.OrPut(ch.parentID(), nil)
			*some = append(*some, ch)
		}
	}
	for parent, some := range families.All() {
		var found []change.Key
		for _, ch := range *some {
			found = append(found, ch.Key)
		}
		err := family.Remove(ctx, w, parent, rows[state.ParentKey(parent.Binding, parent.Key)], found)
		for _, ch := range *some {
			w.Ended(ctx, ch.First, ch.Binding, ch.Key, err)
		}
	}
	return nil
}
