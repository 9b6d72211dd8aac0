package projections

import (
	"strings"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/guard"
	"github.com/dynamill/dynamill/projections/internal/plan"
)

// actionWrite is an action as a part of its move's transaction.
func (e *Engine) actionWrite(mv *plan.Move, a plan.Action) ddb.TransactWriteItem {
	switch a.Kind {
	case plan.UpsertMirror:
		return e.upsertWrite(a, entryVersion(mv))
	case plan.DeleteMirror:
		return e.deleteWrite(a.Binding, a.Target)
	case plan.SpareMirror:
		return e.spareWrite(a.Binding, a.Target)
	case plan.AddLocator, plan.RemoveLocator:
		return e.locatorWrite(mv, a)
	case plan.Park:
		pid := parkedID(a.ID, mv.Key)
		return ddb.TransactWriteItem{Put: &ddb.Put{
			TableName: &e.stateTable, Item: e.parkedRow(pid, a.ID, mv.Key, mv.Position, a.Effect.Parked),
		}}
	default: // plan.Unpark
		return ddb.TransactWriteItem{Delete: &ddb.Delete{
			TableName: &e.stateTable, Key: parkedKey(parkedID(a.ID, mv.Key)).attributes(),
		}}
	}
}

// entryVersion is the version of what a move writes with its ledger entry.
func entryVersion(mv *plan.Move) plan.Version {
	if mv.Rederived > 0 {
		return mv.To.Rederived(mv.Rederived)
	}
	return mv.To
}

// upsertWrite writes a mirror item: only the mirrored attributes, for other rules may own others of the same item.
func (e *Engine) upsertWrite(a plan.Action, v plan.Version) ddb.TransactWriteItem {
	c := newExpression()
	s := plan.Stamp{Context: plan.StampContext(e.incarnation, a.Target, ""), Version: v, Digest: a.Effect.Digest}
	set := "SET " + c.sprintf("%n = %v", a.Stamp, textValue(s.String()))
	var remove []string
	for _, name := range a.Rule.Writes {
		if v, ok := a.Effect.Mirror.Attributes[name]; ok {
			set += c.sprintf(", %n = %v", name, attributes.ToTable(v))
		} else {
			remove = append(remove, c.name(name))
		}
	}
	for _, name := range a.Removes {
		remove = append(remove, c.name(name))
	}
	if len(remove) > 0 {
		set += " REMOVE " + strings.Join(remove, ", ")
	}
	return ddb.TransactWriteItem{Update: &ddb.Update{
		TableName: &e.table, Key: e.itemKey(a.Target), UpdateExpression: &set,
		ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
	}}
}

// deleteWrite deletes a mirror item that carries our stamp (promise 8).
func (e *Engine) deleteWrite(b *plan.Binding, target change.Key) ddb.TransactWriteItem {
	c := newExpression()
	condition := guarded(guard.MirrorAdopted, c.sprintf("attribute_not_exists(%n) OR begins_with(%n, %v)",
		e.partitionKey, b.Stamp, textValue(plan.StampContext(e.incarnation, target, "")+" ")))
	return ddb.TransactWriteItem{Delete: &ddb.Delete{
		TableName: &e.table, Key: e.itemKey(target), ConditionExpression: &condition,
		ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
	}}
}

// spareWrite makes sure that a mirror item which was seen without our stamp still has none.
func (e *Engine) spareWrite(b *plan.Binding, target change.Key) ddb.TransactWriteItem {
	c := newExpression()
	condition := c.sprintf("attribute_not_exists(%n) OR NOT begins_with(%n, %v)",
		b.Stamp, b.Stamp, textValue(plan.StampContext(e.incarnation, target, "")+" "))
	return ddb.TransactWriteItem{ConditionCheck: &ddb.ConditionCheck{
		TableName: &e.table, Key: e.itemKey(target), ConditionExpression: &condition,
		ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
	}}
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

// sumWrite adds to one accumulator. The count of operations tells a later sum from an earlier one.
func (e *Engine) sumWrite(s plan.Sum, suffix int) ddb.TransactWriteItem {
	c := newExpression()
	update := c.sprintf("ADD %n %v, %n %v", "value", attributes.ToTable(change.Number(s.Delta.String())), "operations", numberValue(1))
	return ddb.TransactWriteItem{Update: &ddb.Update{
		TableName: &e.stateTable, Key: accumulatorKey(s.Group, suffix%s.Group.Rule.WriteShards).attributes(),
		UpdateExpression: &update, ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
	}}
}
