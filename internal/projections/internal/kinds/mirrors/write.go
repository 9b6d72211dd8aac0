package mirrors

import (
	"strings"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/projections/internal/target"
)

// Write implements host.Maker. Each action is conditional on the place: no
// item that the engine did not make is deleted, and none of another entity written (promise 8).
func (kind) Write(h *host.Host, a plan.Action, v stamp.Version) ddb.TransactWriteItem {
	m, w := maker{h}, a.FamilyData.(targetWrite)
	t := target.On(a.Binding, "", a.Target)
	t.Condition = m.placeIs(t.Expression, a, w)
	switch w.do {
	case deletes:
		return ddb.TransactWriteItem{Delete: &ddb.Delete{
			TableName: &m.Tables.Table, Key: m.Tables.ItemKey(a.Target), ConditionExpression: &t.Condition,
			ExpressionAttributeNames: t.Names, ExpressionAttributeValues: t.Values, ReturnValuesOnConditionCheckFailure: table.AllOld,
		}}
	case upserts:
		m.upsert(t, a, w, v)
	case releases:
		t.TakeOff(w.removes...)
	}
	return t.InTransaction(m.Tables.Reader)
}

// placeIs is the condition that the place of a mirror item is as the action takes it to be.
func (m maker) placeIs(c *table.Expression, a plan.Action, w targetWrite) string {
	var condition string
	switch made := table.Text(plan.MadeMark(a.Target)); w.place {
	case placeFree:
		condition = c.Format("attribute_not_exists(%n)", m.Tables.PartitionKey)
	case placeMade:
		condition = c.Format("%n = %v", plan.MadeAttribute, made)
	default: // the application made the item
		condition = c.Format("attribute_exists(%n) AND (attribute_not_exists(%n) OR %n <> %v)",
			m.Tables.PartitionKey, plan.MadeAttribute, plan.MadeAttribute, made)
		var is []string
		for _, eq := range a.Rule.Target.Equals {
			is = append(is, c.Format("%n = %v", eq.Attribute, attributes.ToTable(eq.Value)))
		}
		if entity := strings.Join(is, " AND "); w.place == placeOccupied {
			condition += " AND NOT (" + entity + ")"
		} else if entity != "" {
			condition += " AND " + entity
		}
	}
	switch {
	case w.do == releases:
		for _, name := range w.removes {
			condition += c.Same(name, w.seen.Lookup(name))
		}
	case w.do == spares && w.place != placeFree: // it carries no stamp to take off
		condition += c.Format(" AND (attribute_not_exists(%n) OR NOT begins_with(%n, %v))",
			a.Stamp, a.Stamp, table.Text(stamp.Context(m.Planner.Incarnation, a.Target, "")))
	}
	return condition
}

// upsert writes a mirror item: only the mirrored attributes, for other rules may own others of the same item.
func (m maker) upsert(t *target.Write, a plan.Action, w targetWrite, v stamp.Version) {
	t.Stamp(stamp.Stamp{Context: stamp.Context(m.Planner.Incarnation, a.Target, ""), Version: v,
		Digest: plan.DigestOf(a.Binding, change.Item(w.item.content))})
	if w.place == placeFree {
		t.Put(plan.MadeAttribute, change.String(plan.MadeMark(a.Target)))
	}
	t.TakeOff(w.removes...)
	for _, name := range a.Rule.Writes {
		t.Put(name, w.item.content[name])
	}
}
