package projections

import (
	"strings"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/projections/internal/plan"
	"github.com/dynamill/dynamill/projections/internal/state"
	"github.com/dynamill/dynamill/projections/internal/table"
	"github.com/dynamill/dynamill/projections/internal/target"
)

// actionWrite is an action as a part of its move's transaction.
func (e *Engine) actionWrite(mv *plan.Move, a plan.Action) ddb.TransactWriteItem {
	switch a.Kind {
	case plan.AddLocator, plan.RemoveLocator:
		return e.locatorWrite(mv, a)
	case plan.Park:
		return e.tables.PutPart(e.host.ParkedRow(a.ID, a.Target, mv.Position, a.Effect.Parked), "", table.NewExpression())
	case plan.Unpark:
		return e.tables.DeletePart(state.ParkedKey(state.ParkedID(a.ID, a.Target)), "", table.NewExpression())
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
	t := target.On(a.Binding, "", a.Target)
	t.Condition = e.placeIs(t.Expression, a)
	switch a.Kind {
	case plan.DeleteMirror:
		return ddb.TransactWriteItem{Delete: &ddb.Delete{
			TableName: &e.tables.Table, Key: e.tables.ItemKey(a.Target), ConditionExpression: &t.Condition,
			ExpressionAttributeNames: t.Names, ExpressionAttributeValues: t.Values, ReturnValuesOnConditionCheckFailure: table.AllOld,
		}}
	case plan.UpsertMirror:
		e.upsert(t, a, v)
	case plan.ReleaseMirror:
		t.TakeOff(a.Removes...)
	}
	return t.InTransaction(e.tables.Reader)
}

// placeIs is the condition that the place of a mirror item is as the action takes it to be.
func (e *Engine) placeIs(c *table.Expression, a plan.Action) string {
	made := func() ddb.AttributeValue { return table.Text(plan.MadeMark(a.Target)) }
	theirs := func() string {
		return c.Format("attribute_exists(%n) AND (attribute_not_exists(%n) OR %n <> %v)",
			e.tables.PartitionKey, plan.MadeAttribute, plan.MadeAttribute, made())
	}
	var condition string
	switch a.Place {
	case plan.PlaceFree:
		condition = c.Format("attribute_not_exists(%n)", e.tables.PartitionKey)
	case plan.PlaceMade:
		condition = c.Format("%n = %v", plan.MadeAttribute, made())
	case plan.PlaceTheirs:
		condition = theirs()
		for _, eq := range a.Rule.Target.Equals {
			condition += c.Format(" AND %n = %v", eq.Attribute, attributes.ToTable(eq.Value))
		}
	default: // plan.PlaceOccupied
		var is []string
		for _, eq := range a.Rule.Target.Equals {
			is = append(is, c.Format("%n = %v", eq.Attribute, attributes.ToTable(eq.Value)))
		}
		condition = theirs() + " AND NOT (" + strings.Join(is, " AND ") + ")"
	}
	switch {
	case a.Kind == plan.ReleaseMirror:
		for _, name := range a.Removes {
			condition += c.Same(name, a.Seen.Lookup(name))
		}
	case a.Kind == plan.SpareMirror && a.Place != plan.PlaceFree: // it carries no stamp to take off
		condition += c.Format(" AND (attribute_not_exists(%n) OR NOT begins_with(%n, %v))",
			a.Stamp, a.Stamp, table.Text(plan.StampContext(e.planner.Incarnation, a.Target, "")+" "))
	}
	return condition
}

// upsert writes a mirror item: only the mirrored attributes, for other rules may own others of the same item.
func (e *Engine) upsert(t *target.Write, a plan.Action, v plan.Version) {
	t.Stamp(plan.Stamp{Context: plan.StampContext(e.planner.Incarnation, a.Target, ""), Version: v, Digest: a.Effect.Digest})
	if a.Place == plan.PlaceFree {
		t.Put(plan.MadeAttribute, change.String(plan.MadeMark(a.Target)))
	}
	t.TakeOff(a.Removes...)
	for _, name := range a.Rule.Writes {
		t.Put(name, a.Effect.Content[name])
	}
}

// locatorWrite adds or removes the item in the set of items that claim a
// unique value, and counts the change, so that what is shown before it is
// earlier than what is shown after.
func (e *Engine) locatorWrite(mv *plan.Move, a plan.Action) ddb.TransactWriteItem {
	locator, _ := plan.LocatorIn(a.ID)
	c := table.NewExpression()
	members := &ddb.AttributeValueMemberSS{Value: []string{mv.Key.String()}}
	update := c.Format("ADD %n %v", "changes", table.Number(1))
	if a.Kind == plan.AddLocator {
		update += c.Format(", %n %v", "items", members)
	} else {
		update += c.Format(" DELETE %n %v", "items", members)
	}
	return e.tables.UpdatePart(state.LocatorKey(locator, a.Effect.Value), update, "", c)
}

// sumWrite adds to one accumulator: that of a suffix, or so many after it. The count of
// operations tells a later sum from an earlier one.
func (e *Engine) sumWrite(s plan.Sum, suffix, shift int) ddb.TransactWriteItem {
	suffix %= s.Group.Rule.Suffixes()
	if shift > 0 {
		suffix = (suffix + shift) % s.Group.Suffixes
	}
	c := table.NewExpression()
	update := c.Format("ADD %n %v, %n %v", "value", attributes.ToTable(change.Number(s.Delta.String())), "operations", table.Number(1))
	return e.tables.UpdatePart(state.AccumulatorKey(s.Group, suffix), update, "", c)
}
