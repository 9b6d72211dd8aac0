package projections

import (
	"strings"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/projections/internal/plan"
)

// actionWrite is an action as a part of its move's transaction.
func (e *Engine) actionWrite(mv *plan.Move, a plan.Action) ddb.TransactWriteItem {
	switch a.Kind {
	case plan.AddLocator, plan.RemoveLocator:
		return e.locatorWrite(mv, a)
	case plan.Park:
		return ddb.TransactWriteItem{Put: &ddb.Put{
			TableName: &e.stateTable, Item: e.parkedRow(parkedID(a.ID, a.Target), a.ID, a.Target, mv.Position, a.Effect.Parked),
		}}
	case plan.Unpark:
		return ddb.TransactWriteItem{Delete: &ddb.Delete{
			TableName: &e.stateTable, Key: parkedKey(parkedID(a.ID, a.Target)).attributes(),
		}}
	}
	return e.mirrorWrite(a, entryVersion(mv))
}

// entryVersion is the version of a write that goes with a move's ledger entry.
func entryVersion(mv *plan.Move) plan.Version {
	if at, rederived := mv.At(mv.To.RulesEpoch()); rederived > 0 {
		return at.Rederived(rederived)
	}
	return mv.To
}

// mirrorWrite is an action on a mirror item. Each is conditional on the place: no
// item that the engine did not make is deleted, and none of another entity written (promise 8).
func (e *Engine) mirrorWrite(a plan.Action, v plan.Version) ddb.TransactWriteItem {
	t := onTarget(a.Binding, "", a.Target)
	t.condition = e.placeIs(t.expression, a)
	switch a.Kind {
	case plan.DeleteMirror:
		return ddb.TransactWriteItem{Delete: &ddb.Delete{
			TableName: &e.table, Key: e.itemKey(a.Target), ConditionExpression: &t.condition,
			ExpressionAttributeNames: t.names, ExpressionAttributeValues: t.values, ReturnValuesOnConditionCheckFailure: allOld,
		}}
	case plan.UpsertMirror:
		e.upsert(t, a, v)
	case plan.ReleaseMirror:
		t.takeOff(a.Removes...)
	}
	return e.inTransaction(t)
}

// placeIs is the condition that the place of a mirror item is as the action takes it to be.
func (e *Engine) placeIs(c *expression, a plan.Action) string {
	made := func() ddb.AttributeValue { return textValue(plan.MadeMark(a.Target)) }
	theirs := func() string {
		return c.sprintf("attribute_exists(%n) AND (attribute_not_exists(%n) OR %n <> %v)",
			e.partitionKey, plan.MadeAttribute, plan.MadeAttribute, made())
	}
	var condition string
	switch a.Place {
	case plan.PlaceFree:
		condition = c.sprintf("attribute_not_exists(%n)", e.partitionKey)
	case plan.PlaceMade:
		condition = c.sprintf("%n = %v", plan.MadeAttribute, made())
	case plan.PlaceTheirs:
		condition = theirs()
		for _, eq := range a.Rule.Target.Equals {
			condition += c.sprintf(" AND %n = %v", eq.Attribute, attributes.ToTable(eq.Value))
		}
	default: // plan.PlaceOccupied
		var is []string
		for _, eq := range a.Rule.Target.Equals {
			is = append(is, c.sprintf("%n = %v", eq.Attribute, attributes.ToTable(eq.Value)))
		}
		condition = theirs() + " AND NOT (" + strings.Join(is, " AND ") + ")"
	}
	switch {
	case a.Kind == plan.ReleaseMirror:
		for _, name := range a.Removes {
			condition += c.same(name, a.Seen.Lookup(name))
		}
	case a.Kind == plan.SpareMirror && a.Place != plan.PlaceFree: // it carries no stamp to take off
		condition += c.sprintf(" AND (attribute_not_exists(%n) OR NOT begins_with(%n, %v))",
			a.Stamp, a.Stamp, textValue(plan.StampContext(e.incarnation, a.Target, "")+" "))
	}
	return condition
}

// upsert writes a mirror item: only the mirrored attributes, for other rules may own others of the same item.
func (e *Engine) upsert(t *targetWrite, a plan.Action, v plan.Version) {
	t.stamp(plan.Stamp{Context: plan.StampContext(e.incarnation, a.Target, ""), Version: v, Digest: a.Effect.Digest})
	if a.Place == plan.PlaceFree {
		t.put(plan.MadeAttribute, change.String(plan.MadeMark(a.Target)))
	}
	t.takeOff(a.Removes...)
	for _, name := range a.Rule.Writes {
		t.put(name, a.Effect.Mirror.Attributes[name])
	}
}

// locatorWrite adds or removes the item in the set of items that claim a
// unique value, and counts the change, so that what is shown before it is
// earlier than what is shown after.
func (e *Engine) locatorWrite(mv *plan.Move, a plan.Action) ddb.TransactWriteItem {
	locator, _ := plan.LocatorIn(a.ID)
	c := newExpression()
	members := &ddb.AttributeValueMemberSS{Value: []string{mv.Key.String()}}
	update := c.sprintf("ADD %n %v", "changes", numberValue(1))
	if a.Kind == plan.AddLocator {
		update += c.sprintf(", %n %v", "items", members)
	} else {
		update += c.sprintf(" DELETE %n %v", "items", members)
	}
	return ddb.TransactWriteItem{Update: &ddb.Update{
		TableName: &e.stateTable, Key: locatorKey(locator, a.Effect.Value).attributes(), UpdateExpression: &update,
		ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
	}}
}

// sumWrite adds to one accumulator: that of a suffix, or so many after it. The count of
// operations tells a later sum from an earlier one.
func (e *Engine) sumWrite(s plan.Sum, suffix, shift int) ddb.TransactWriteItem {
	suffix %= s.Group.Rule.Suffixes()
	if shift > 0 {
		suffix = (suffix + shift) % s.Group.Suffixes
	}
	c := newExpression()
	update := c.sprintf("ADD %n %v, %n %v", "value", attributes.ToTable(change.Number(s.Delta.String())), "operations", numberValue(1))
	return ddb.TransactWriteItem{Update: &ddb.Update{
		TableName: &e.stateTable, Key: accumulatorKey(s.Group, suffix).attributes(),
		UpdateExpression: &update, ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
	}}
}
