package deletions

import (
	"context"
	"errors"
	"slices"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/awscall"
	"github.com/dynamill/dynamill/internal/projections/internal/children"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/projections/internal/target"
)

// removedAtOnce is how many children one transaction deletes. They share the checks that their parent is gone, which take a few more
// actions.
const removedAtOnce = plan.TransactActionsMax / 2

// readAtOnce is how many children are in memory as whole items, of up to 400 KB each: as many as one request reads (Amazon DynamoDB API
// reference, "BatchGetItem").
const readAtOnce = 100

// absence are the checks in a transaction that a parent of some children is not there. If a unique value is the parent, no item has it as
// far as the locator tells, and those of whose deletion the mark tells do not have it again. A key under which the table can hold no item
// needs no check, nor does one under which a child stands.
func absence(rd *table.Reader, parent plan.ItemRule, mark table.Row, some []change.Key) (parts []ddb.TransactWriteItem) {
	keys := []change.Key{parent.Key}
	if parent.Rule.ByUnique {
		c := table.NewExpression()
		located := state.LocatorKey(parent.Locator, parent.Key.Partition)
		parts = append(parts, rd.CheckPart(located, c.Format("attribute_not_exists(%n)", "items"), c))
		keys = state.FormerParents(mark)
	}
	for _, key := range keys {
		if rd.CanExist(key) && !slices.Contains(some, key) {
			parts = append(parts, absent(rd, parent, key))
		}
	}
	return parts
}

// absent checks in a transaction that no item of the parents' entity has a key, or that it does not have the value that is the parent.
func absent(rd *table.Reader, parent plan.ItemRule, key change.Key) ddb.TransactWriteItem {
	entity, t, others := parent.Rule.Source, target.On(parent.Binding, "", key), ""
	for _, eq := range entity.Equals {
		others += t.Format(" AND %n = %v", eq.Attribute, attributes.ToTable(eq.Value))
	}
	if parent.Rule.ByUnique && !entity.UniqueInKey() {
		others += target.HoldsText(t.Expression, entity.Unique, parent.Key.Partition)
	}
	t.Condition = t.Format("attribute_not_exists(%n)", rd.PartitionKey)
	if others != "" {
		t.Condition = t.Format("NOT (attribute_exists(%n)", rd.PartitionKey) + others + ")"
	}
	return t.InTransaction(rd)
}

// marked checks in a transaction that the mark of a parent is as it was read. The row's version rises whenever a mark is taken away or put
// by another record, so a mark that was put again differs.
func marked(rd *table.Reader, parent plan.ItemRule, mark table.Row) ddb.TransactWriteItem {
	c := table.NewExpression()
	return rd.CheckPart(state.ParentKey(parent.Binding, parent.Key), table.Whole(c.SameAs(mark, "a", "changes", "deleted")), c)
}

// deletion deletes a child in a transaction, if it refers to its parent as it did when it was read.
func deletion(rd *table.Reader, b *plan.Binding, key change.Key, seen change.Item) ddb.TransactWriteItem {
	t := target.On(b, "", key)
	t.Condition = target.StillEntity(rd, t.Expression, b.Rule.Target)
	t.Holds(seen, b.Rule.JoinReads...)
	return ddb.TransactWriteItem{Delete: &ddb.Delete{
		TableName: &rd.Table, Key: rd.ItemKey(key), ConditionExpression: &t.Condition,
		ExpressionAttributeNames: t.Names, ExpressionAttributeValues: t.Values,
	}}
}

// Spread implements children.Spreader: it deletes children of a deleted parent, as long as the mark of its deletion is there. It returns
// how many still refer to it.
func (kind) Spread(ctx context.Context, w children.Run, s *children.Spreading, rows []children.Row) (referring int, err error) {
	if len(rows) == 0 {
		return 0, nil
	}
	parent, keys := plan.ItemRule{Binding: s.Binding, Key: s.Parent}, w.ChildKeys(s.Binding, rows)
	mark, err := readMark(ctx, w, parent)
	if at := state.ParentAt(s.Binding, mark); err != nil || !state.IsMarked(mark) || at == "" || at != s.Version && at != s.Since {
		return len(rows), err // the parent is there again, or the mark was raised: by a record or a task that looks at all children
	}
	if s.Rule.Collection { // its pages hold what decides
		seen := map[change.Key]change.Item{}
		for i, r := range rows {
			seen[keys[i]] = attributes.ItemFromTable(r)
		}
		return takeAway(ctx, w, parent, mark, rows, seen)
	}
	if i := slices.Index(keys, s.Parent); i > 0 { // see removeSeen
		rows = slices.Concat(rows[i:i+1], rows[:i], rows[i+1:])
	}
	for some := range slices.Chunk(rows, readAtOnce) {
		seen, err := w.Tables.ReadItems(ctx, "reading the children of "+s.Parent.String(), w.ChildKeys(s.Binding, some))
		if err != nil {
			return 0, err
		}
		if referring, err := takeAway(ctx, w, parent, mark, some, seen); err != nil || referring > 0 {
			return referring, err
		}
	}
	return 0, nil
}

// takeAway is Spread of children as they were read.
func takeAway(ctx context.Context, w children.Run, parent plan.ItemRule, mark table.Row, rows []children.Row,
	seen map[change.Key]change.Item) (referring int, err error) {
	keys := w.ChildKeys(parent.Binding, rows)
	var some []change.Key
	var dangling []children.Row
	for i, key := range keys {
		if refersTo(w, parent, key, seen[key]) {
			some = append(some, key)
		} else {
			dangling = append(dangling, rows[i])
		}
	}
	if err := w.PruneAll(ctx, parent.Binding, dangling); err != nil {
		return 0, err
	}
	switch err := remove(ctx, w, parent, mark, some, seen); {
	case errors.Is(err, errMarkMoved): // as in Spread
		return len(some), nil
	case err != nil:
		return 0, err
	}
	return 0, nil
}

// Remove implements children.Marking. If an item may have the parent's value and the locator does not list it yet, Remove leaves the
// children to the task. If another worker raises the mark meanwhile, Remove reads the mark again and goes on: that worker may crash before
// it puts a task.
func (kind) Remove(ctx context.Context, w children.Run, parent plan.ItemRule, mark table.Row, some []change.Key) error {
	doing := "deleting children of " + children.NameOf(parent.Binding, parent.Key)
	return table.Contend(ctx, doing, func() (table.Round, error) {
		if parent.Rule.ByUnique && (!parent.Live.Load() || w.Now().Before(takeoverEnd(mark))) {
			return table.Finished, leaveMarked(ctx, w, parent)
		}
		seen, err := w.Tables.ReadItems(ctx, "reading children of "+parent.Key.String(), some)
		if err != nil {
			return table.Lost, err
		}
		referring := slices.DeleteFunc(slices.Clone(some), func(key change.Key) bool { return !refersTo(w, parent, key, seen[key]) })
		if err = remove(ctx, w, parent, mark, referring, seen); !errors.Is(err, errMarkMoved) {
			return table.Finished, err
		}
		mark, err = readMark(ctx, w, parent)
		return table.FinishedIf(!state.IsMarked(mark)), err
	})
}

// remove deletes children that were seen to refer to a parent. If the parent is there, it takes the mark away instead. It returns
// errMarkMoved if the mark is not as it was read.
func remove(ctx context.Context, w children.Run, parent plan.ItemRule, mark table.Row, some []change.Key,
	seen map[change.Key]change.Item) error {
	err := removeSeen(ctx, w, parent, mark, some, seen)
	if errors.Is(err, errParentThere) {
		_, err = dropMark(ctx, w, parent, mark)
	}
	return err
}

// refersTo reports whether an item is a child that refers to a parent.
func refersTo(w children.Run, parent plan.ItemRule, key change.Key, item change.Item) bool {
	l := children.LinkOf(w.Planner, parent.Binding, key, table.Image(item))
	return l.Refers && l.Parent == parent.Key
}

// removeSeen deletes children that were seen to refer to a parent. One transaction follows the other, because all check the same parent.
func removeSeen(ctx context.Context, w children.Run, parent plan.ItemRule, mark table.Row, some []change.Key,
	seen map[change.Key]change.Item) error {
	if i := slices.Index(some, parent.Key); i >= 0 && !parent.Rule.ByUnique && len(some) > 1 { // where it stands, no parent does
		if err := removeSeen(ctx, w, parent, mark, some[i:i+1], seen); err != nil {
			return err
		}
		some = slices.Delete(slices.Clone(some), i, i+1)
	}
	for chunk := range slices.Chunk(some, removedAtOnce) {
		err := removeTogether(ctx, w, parent, mark, chunk, seen)
		if err == nil || !table.LostRace(err) && table.Refusal(err) == "" {
			if err != nil {
				return err
			}
			continue
		}
		// One of them is not as it was seen, or together they are too large. Mostly another worker has deleted them meanwhile.
		now, err := w.Tables.ReadItems(ctx, "reading children of "+parent.Key.String(), chunk)
		if err != nil {
			return err
		}
		for _, key := range chunk {
			if err := removeOne(ctx, w, parent, mark, key, now[key]); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeOne deletes one child, as often anew as it is not as it was seen.
func removeOne(ctx context.Context, w children.Run, parent plan.ItemRule, mark table.Row, key change.Key, child change.Item) error {
	return table.Contend(ctx, "deleting "+key.String(), func() (table.Round, error) {
		if !refersTo(w, parent, key, child) {
			return table.Finished, nil
		}
		err := removeTogether(ctx, w, parent, mark, []change.Key{key}, map[change.Key]change.Item{key: child})
		if !table.LostRace(err) {
			return table.Finished, err
		}
		items, err := w.Tables.ReadItems(ctx, "reading "+key.String(), []change.Key{key})
		child = items[key]
		return table.Lost, err
	})
}

// removeTogether deletes children in one transaction, which checks that the parent is not there and that its mark is as it was read.
func removeTogether(ctx context.Context, w children.Run, parent plan.ItemRule, mark table.Row, some []change.Key,
	seen map[change.Key]change.Item) error {
	parts := absence(w.Tables.Reader, parent, mark, some)
	checks := append(slices.Repeat([]error{errParentThere}, len(parts)), errMarkMoved)
	parts = append(parts, marked(w.Tables.Reader, parent, mark))
	for _, key := range some {
		parts = append(parts, deletion(w.Tables.Reader, parent.Binding, key, seen[key]))
	}
	doing := "deleting children of " + children.NameOf(parent.Binding, parent.Key)
	err := w.Tables.Transact(ctx, doing, []string{parent.ID}, parts)
	if err == nil {
		w.Counters.Deleted.Add(int64(len(some)))
		w.Logger.InfoContext(ctx, "deleted children of a deleted parent", "rule", parent.Rule.Name,
			"parent", children.NameOf(parent.Binding, parent.Key), "children", len(some))
		return nil
	}
	var canceled *ddb.TransactionCanceledException
	if errors.As(err, &canceled) && len(canceled.CancellationReasons) == len(parts) {
		for i, failed := range checks {
			if awscall.ReasonCode(canceled.CancellationReasons[i]) == "ConditionalCheckFailed" {
				return failed
			}
		}
	}
	return err
}
