package deletions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/children"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// ParentChanged implements children.Marking.
func (kind) ParentChanged(ctx context.Context, w children.Run, id plan.ItemRule, f *children.FanOut) error {
	v := stamp.VersionAt(id.Epoch, f.Position)
	switch {
	case f.Back:
		return skipMark(ctx, w, id, v.Rederived(1))
	case f.Given != nil:
		return clearMark(ctx, w, id, v)
	}
	marked, err := putMark(ctx, w, id, v)
	if err != nil || !marked {
		return err // or the row is later: of a later deletion, or of the parent's return
	}
	return removeFirst(ctx, w, id, v)
}

// putMark notes that a parent was deleted, at a version. It reports false if the row is later, with a mark or without.
func putMark(ctx context.Context, w children.Run, id plan.ItemRule, v stamp.Version) (bool, error) {
	c := table.NewExpression()
	set := c.Format("SET %n = %v, ", "a", table.Text(string(v))) + deletedSet(w, c)
	condition := state.SeenBefore(c, id.Binding, "<=", v)
	return w.Tables.UpdateState(ctx, id.ID, "marking the deletion of "+id.Key.String(), state.ParentKey(id.Binding, id.Key), set, condition, c)
}

// formerSet has the mark of a value tell which items had it. The transactions that delete check that none of them has it again, because
// the locator tells that only when the item's record is applied. The row keeps them when the mark is taken away.
func formerSet(c *table.Expression, mark table.Row, deleted []change.Key) string {
	var texts []string
	for _, key := range slices.Concat(deleted, state.FormerParents(mark)) {
		if text := key.String(); !slices.Contains(texts, text) && len(texts) < formerMax {
			texts = append(texts, text)
		}
	}
	return c.Format(", %n = %v", "former", &ddb.AttributeValueMemberSS{Value: texts})
}

// formerMax is how many items a mark names, those that were deleted now before others: a transaction that checks them all, of up to 400 KB
// each, beside one child stays below 4 MB (Amazon DynamoDB developer guide, "Quotas").
const formerMax = 4

// deletedSet are the attributes of every mark. The clock decides when it goes, and nothing else.
func deletedSet(w children.Run, c *table.Expression) string {
	return c.Format("%n = %v, %n = %v", "deleted", &ddb.AttributeValueMemberBOOL{Value: true},
		"ttl", table.Number(w.Now().Add(state.TombstoneTTL).Unix()))
}

// clearMark takes the mark of a parent away that is there at a version, unless the mark is later. The row stays, at that version, until
// it expires: a stalled worker must not put the mark again, as the parent may be an item of another entity by then.
func clearMark(ctx context.Context, w children.Run, id plan.ItemRule, v stamp.Version) error {
	mark, err := readMark(ctx, w, id)
	if err != nil || !state.IsMarked(mark) || state.SeenAt(id.Binding, mark) >= v {
		return err
	}
	_, err = takeMark(ctx, w, id, mark, "a", table.Text(string(v)))
	return err
}

// skipMark raises a parent's row without a mark, even if no worker has put one. v must be above the deletion's own version, because the
// only position known may be that of the deletion.
func skipMark(ctx context.Context, w children.Run, id plan.ItemRule, v stamp.Version) error {
	c := table.NewExpression()
	set := c.Format("SET %n = %v, %n = %v REMOVE %n", "a", table.Text(string(v)), "ttl",
		table.Number(w.Now().Add(state.TombstoneTTL).Unix()), "deleted")
	doing, key := "noting that "+id.Key.String()+" is there again", state.ParentKey(id.Binding, id.Key)
	_, err := w.Tables.UpdateState(ctx, id.ID, doing, key, set, state.SeenBefore(c, id.Binding, "<", v), c)
	return err
}

// dropMark takes a mark away, because its parent was found in the table. The row's version rises: neither must a stalled worker put the
// mark again, nor the task of the mark go on. It reports false if the mark is not as it was read.
func dropMark(ctx context.Context, w children.Run, id plan.ItemRule, mark table.Row) (bool, error) {
	if id.Rule.ByUnique {
		return takeMark(ctx, w, id, mark, "changes", table.Number(nextCount(w, mark)))
	}
	at := max(state.SeenAt(id.Binding, mark), stamp.VersionAt(id.Epoch, change.Position{})) // of a former state table's worker: none
	return takeMark(ctx, w, id, mark, "a", table.Text(string(at.NextRederived())))
}

// takeMark takes a mark away if it is as it was read: the mark of a later deletion stays.
func takeMark(ctx context.Context, w children.Run, id plan.ItemRule, mark table.Row, attribute string, v ddb.AttributeValue) (bool, error) {
	c := table.NewExpression()
	condition := table.Whole(c.SameAs(mark, "a", "changes"))
	doing, key := "clearing the mark of "+children.NameOf(id.Binding, id.Key), state.ParentKey(id.Binding, id.Key)
	return w.Tables.UpdateState(ctx, id.ID, doing, key, c.Format("SET %n = %v REMOVE %n", attribute, v, "deleted"), condition, c)
}

func readMark(ctx context.Context, w children.Run, id plan.ItemRule) (table.Row, error) {
	key := state.ParentKey(id.Binding, id.Key)
	rows, err := w.Tables.ReadState(ctx, "reading the mark of "+children.NameOf(id.Binding, id.Key), []table.Key{key})
	return rows[key], err
}

// RollUp implements host.Grouper: parents that are known by a unique value. The ledger's moves have changed the value's locator by then.
func (kind) RollUp(ctx context.Context, r *host.Run, groups []plan.GroupRef, pl *plan.Changes) []error {
	w, asked := children.Run{Run: r}, &children.Asked(pl).Values
	return w.Tables.Every(ctx, len(groups), func(ctx context.Context, i int) error {
		g := groups[i]
		v := asked.Of(g)
		if v == nil && len(pl.Rollups.Of(g).Relocated) == 0 {
			return nil
		}
		var deleted []change.Key
		if v != nil {
			deleted = v.Deleted
		}
		return valueChanged(ctx, w, g, deleted)
	})
}

// valueChanged puts the mark of a value whose item was deleted, if no other item has the value, and begins with its children; or it takes
// the mark away, because an item has the value. An item that takes the value at this moment is found by the transactions that delete.
func valueChanged(ctx context.Context, w children.Run, g plan.GroupRef, deleted []change.Key) error {
	id := plan.ItemRule{Binding: g.Binding, Key: change.Key{Partition: g.Group}}
	return table.Contend(ctx, "looking for an item with "+g.Group, func() (table.Round, error) {
		mark, err := readMark(ctx, w, id) // before the locator: an item that has the value then has it since the mark was put
		if err != nil {
			return table.Lost, err
		}
		located := state.LocatorKey(g.Locator, g.Group)
		rows, err := w.Tables.ReadState(ctx, "reading a locator", []table.Key{located})
		if err != nil {
			return table.Lost, err
		}
		locator := state.ReadSet(rows[located], true)
		contested := audit.ContestedTarget{ID: effects.LocatorID(g.Locator), Value: g.Group}
		if err := w.UpdateContentionList(ctx, contested, locator); err != nil {
			return table.Lost, err
		}
		switch {
		case len(locator.Sources) > 0 && state.IsMarked(mark):
			dropped, err := dropMark(ctx, w, id, mark)
			return table.FinishedIf(dropped), err // another worker may have raised it
		case len(locator.Sources) > 0 || len(deleted) == 0:
			return table.Finished, nil
		}
		v, err := countMark(ctx, w, id, deleted)
		if err != nil {
			return table.Lost, err
		}
		return table.Finished, removeLater(ctx, w, id, v, w.Now().Add(takeoverTime))
	})
}

// takeoverTime is how long the children of a value are left when its item was deleted. An application that moves an item to another key
// writes two items, whose records come in any order: the worker that applies the other one is given time. Nothing else hangs on it.
const takeoverTime = 30 * time.Second

// takeoverEnd is when the children of a value that is marked are left no more. A mark expires a fixed time after its deletion.
func takeoverEnd(mark table.Row) time.Time {
	return time.Unix(table.NumberOf(mark["ttl"]), 0).Add(takeoverTime - state.TombstoneTTL)
}

// leaveMarked leaves the children of a value to the task, if it still is marked. The mark's count is raised: so the task begins with the
// first child again. What other children wait for stays.
func leaveMarked(ctx context.Context, w children.Run, id plan.ItemRule) error {
	v, end := stamp.Version(""), time.Time{}
	doing := "leaving children of " + id.Key.Partition
	err := table.Contend(ctx, doing, func() (table.Round, error) {
		mark, err := readMark(ctx, w, id)
		if err != nil || !state.IsMarked(mark) {
			return table.Finished, err
		}
		count, c := nextCount(w, mark), table.NewExpression()
		v, end = stamp.VersionOf(id.Epoch, count), takeoverEnd(mark)
		written, err := w.Tables.UpdateState(ctx, id.ID, doing, state.ParentKey(id.Binding, id.Key),
			c.Format("SET %n = %v", "changes", table.Number(count)), table.Whole(c.SameAs(mark, "changes", "deleted")), c)
		return table.FinishedIf(written), err
	})
	if err != nil || v == "" {
		return err
	}
	return removeLater(ctx, w, id, v, end)
}

// MarkedAgain implements children.Marking. A mark with the version of a record needs nothing: that record puts the mark and the task again.
// The mark of a unique value is put before its task, and the worker may have crashed between the two. So MarkedAgain puts the task.
func (kind) MarkedAgain(ctx context.Context, w children.Run, parent plan.ItemRule) error {
	if !parent.Rule.ByUnique {
		return nil
	}
	mark, err := readMark(ctx, w, parent)
	if err != nil || !state.IsMarked(mark) {
		return err
	}
	return removeLater(ctx, w, parent, state.ParentAt(parent.Binding, mark), takeoverEnd(mark))
}

// removeLater leaves all children of a value that is marked to a task. Workers take it for held until the time is over.
func removeLater(ctx context.Context, w children.Run, id plan.ItemRule, v stamp.Version, until time.Time) error {
	found := false
	_, _, err := w.EachChildPage(ctx, id.Binding, children.Span{Parent: id.Key}, 1, func(_ context.Context, rows []children.Row) (int, error) {
		found = len(rows) > 0
		return 0, nil
	})
	if err != nil || !found {
		return err
	}
	return w.PutTask(ctx, state.Task{Parent: id, At: v, Cursor: table.Row{}, Until: until})
}

// nextCount is a count above that of a value's row. Without a row it goes on from the time in seconds, as tasks may carry a former one.
func nextCount(w children.Run, row table.Row) int64 {
	return max(state.CountOf(row["changes"]), w.Now().Unix()) + 1
}

// countMark marks a value whose items were deleted. The version of its mark is a count, because its items have no order.
func countMark(ctx context.Context, w children.Run, id plan.ItemRule, deleted []change.Key) (v stamp.Version, err error) {
	doing := "marking the deletion of " + id.Key.Partition
	err = table.Contend(ctx, doing, func() (table.Round, error) {
		mark, err := readMark(ctx, w, id)
		if err != nil {
			return table.Lost, err
		}
		count := nextCount(w, mark)
		c := table.NewExpression()
		set := c.Format("SET %n = %v, ", "changes", table.Number(count)) + deletedSet(w, c) + formerSet(c, mark, deleted)
		written, err := w.Tables.UpdateState(ctx, id.ID, doing, state.ParentKey(id.Binding, id.Key), set,
			table.Whole(c.SameAs(mark, "changes")), c)
		v = stamp.VersionOf(id.Epoch, count)
		return table.FinishedIf(written), err
	})
	return v, err
}

// removeFirst deletes the first children of a parent that is marked. What lies beyond the bound becomes a task.
func removeFirst(ctx context.Context, w children.Run, id plan.ItemRule, v stamp.Version) error {
	s := &children.Spreading{Binding: id.Binding, Span: children.Span{Parent: id.Key}, Version: v}
	atOnce := w.FanOutNow()
	referring, next, err := w.EachChildPage(ctx, id.Binding, s.Span, atOnce, func(ctx context.Context, rows []children.Row) (int, error) {
		return kind{}.Spread(ctx, w, s, rows)
	})
	if err != nil || len(next) == 0 {
		return err
	}
	return w.PutTask(ctx, state.Task{Parent: id, At: v, Cursor: next, Children: atOnce, Referring: referring})
}

// MarkWords implements children.Marking.
func (kind) MarkWords(b *plan.Binding, parent change.Key, mark table.Row) string {
	if !state.IsMarked(mark) {
		return "no deletion of " + children.NameOf(b, parent) + " is marked"
	}
	until := time.Unix(table.NumberOf(mark["ttl"]), 0).UTC().Format(time.RFC3339)
	return fmt.Sprintf("%s was deleted: what refers to it is deleted, too, until %s", children.NameOf(b, parent), until)
}

// errParentThere says that a parent is there again, errMarkMoved that its mark is not as it was read.
var (
	errParentThere = errors.New("the parent is there")
	errMarkMoved   = errors.New("the mark was taken away, or raised")
)
