package groups

import (
	"fmt"
	"maps"
	"slices"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/projections/internal/target"
	"github.com/dynamill/dynamill/internal/rules"
)

// stamps are those of the item's rules, with what each displays.
func (r run) stamps(it *Item, s ItemTotals) (values [][]change.Value, stamps []stamp.Stamp) {
	for i, b := range it.Live {
		shown := FormOf(b.Rule).Values(s.Totals[i])
		values = append(values, shown)
		stamps = append(stamps, stamp.Stamp{Context: contextOf(b, r.Planner.Incarnation, it.Key, ""), Version: r.versionOf(s.Totals[i]),
			Digest: plan.Digest(b, shown)})
	}
	return values, stamps
}

// content is all that the rules want on the item; absent: no attribute.
func (r run) content(it *Item, s ItemTotals) map[string]change.Value {
	content := map[string]change.Value{plan.MadeAttribute: change.String(plan.MadeMark(it.Key))}
	for _, eq := range it.Entity.Equals {
		content[eq.Attribute] = eq.Value
	}
	values, stamps := r.stamps(it, s)
	for i, b := range it.Live {
		if s.Totals[i].Err != nil {
			continue
		}
		for n, name := range b.Rule.Writes {
			content[name] = values[i][n]
		}
		content[b.Stamp] = change.String(stamps[i].String())
	}
	if it.Entity.Expire > 0 {
		content[it.Entity.ExpireAttribute] = change.Number(fmt.Sprint(r.Now().Add(it.Entity.Expire).Unix()))
	}
	return content
}

// itemBytesMax is the most bytes of an item (Amazon DynamoDB developer guide, "Quotas").
const itemBytesMax = 400 << 10

// hasRoom reports whether the item has room for what its rules want, beside what stays on it as far as it was seen.
func (r run) hasRoom(it *Item, s ItemTotals) bool {
	content := change.Item(r.content(it, s))
	if it.seen == nil || !plan.IsMade(it.Key, it.seen) { // it comes whole, or nothing is known of it
		return content.Size()+attributes.ItemFromTable(r.Tables.ItemKey(it.Key)).Size() <= itemBytesMax
	}
	for name, v := range it.seen.All() {
		if _, written := content[name]; !written {
			content[name] = v
		}
	}
	return content.Size() <= itemBytesMax
}

// fit leaves out the rule that has the item grow most, one after the other, until the item has room. What such a rule shows stays as it is.
// It reports whether it has left out any.
func (r run) fit(it *Item, s ItemTotals) (leftOut bool) {
	for !r.hasRoom(it, s) {
		most, bytes := growing(it, s)
		if bytes <= 0 {
			break
		}
		leftOut = true
		s.Totals[most].Err = &rules.ItemError{Code: effects.CodeWriteRejected, Reason: fmt.Sprintf(
			"the rule's values need %d more bytes, and the item would be larger than the %d bytes that DynamoDB takes", bytes, itemBytesMax)}
	}
	return leftOut
}

// growing returns the index in Live of the rule whose values grow the item most, and by how many bytes; 0 bytes: none.
func growing(it *Item, s ItemTotals) (most, bytes int) {
	for i, b := range it.Live {
		if s.Totals[i].Err != nil {
			continue
		}
		growth := 0
		for n, v := range FormOf(b.Rule).Values(s.Totals[i]) {
			growth += v.Size()
			if it.seen != nil && plan.IsMade(it.Key, it.seen) {
				growth -= it.seen.Lookup(b.Rule.Writes[n]).Size()
			}
		}
		if growth > bytes {
			most, bytes = i, growth
		}
	}
	return most, bytes
}

// itemWrite writes the item as the rows say, if it is there and shows nothing later.
func (r run) itemWrite(it *Item, s ItemTotals) *target.Write {
	w := target.On(it.Live[0], "deriving "+it.Key.String(), it.Key)
	w.LooksAgain = true
	putAll(w, r.content(it, s))
	_, stamps := r.stamps(it, s)
	w.Condition = w.Format("%n = %v", plan.MadeAttribute, table.Text(plan.MadeMark(it.Key)))
	for _, eq := range it.Entity.Equals {
		w.Condition += w.Format(" AND %n = %v", eq.Attribute, attributes.ToTable(eq.Value))
	}
	for i, b := range it.Live {
		if s.Totals[i].Err != nil {
			continue
		}
		w.Condition += " AND " + target.UnstampedOrNotLater(w.Expression, b.Stamp, stamps[i])
	}
	return w
}

func putAll(w *target.Write, content map[string]change.Value) {
	for _, name := range slices.Sorted(maps.Keys(content)) {
		w.Put(name, content[name])
	}
}

// asRead is the condition that an item is still what it was when it was read: nothing, another program's, or one that rules made, with the
// same stamps. Later rules show the same rows under other stamps.
func (r run) asRead(it *Item, c *table.Expression) string {
	if it.seen == nil {
		return c.Format("attribute_not_exists(%n)", r.Tables.PartitionKey)
	}
	condition := c.Same(plan.MadeAttribute, it.seen.Lookup(plan.MadeAttribute))
	for _, b := range it.Live {
		condition += c.Same(b.Stamp, it.seen.Lookup(b.Stamp))
	}
	return table.Whole(condition)
}

// putPart puts the item in the place of whatever stands there.
func (r run) putPart(it *Item, s ItemTotals) ddb.TransactWriteItem {
	content := r.content(it, s)
	maps.DeleteFunc(content, func(_ string, v change.Value) bool { return v.Kind() == change.KindAbsent })
	item := attributes.ItemToTable(change.Item(content))
	for name, v := range r.Tables.ItemKey(it.Key) {
		item[name] = v
	}
	c := table.NewExpression()
	condition := r.asRead(it, c)
	return ddb.TransactWriteItem{Put: &ddb.Put{TableName: &r.Tables.Table, Item: item, ConditionExpression: &condition,
		ExpressionAttributeNames: c.Names, ExpressionAttributeValues: c.Values, ReturnValuesOnConditionCheckFailure: table.AllOld}}
}

// deletePart deletes whatever stands at the item's key.
func (r run) deletePart(it *Item) ddb.TransactWriteItem {
	c := table.NewExpression()
	condition := r.asRead(it, c)
	return ddb.TransactWriteItem{Delete: &ddb.Delete{TableName: &r.Tables.Table, Key: r.Tables.ItemKey(it.Key),
		ConditionExpression: &condition, ExpressionAttributeNames: c.Names, ExpressionAttributeValues: c.Values,
		ReturnValuesOnConditionCheckFailure: table.AllOld}}
}
