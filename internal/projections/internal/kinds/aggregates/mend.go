package aggregates

import (
	"context"
	"slices"
	"strconv"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/auditing"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// tornMax bounds how many torn accumulators one transaction mends, beside the one that is added to.
const tornMax = plan.TransactActionsMax - 2

// mendSum adds to an aggregate what its accumulators lack. That counts as an
// operation, so that a worker that is about to show an older sum comes too late; and
// it counts as so many that what is shown already is older, too.
//
// What is lacking was read while nothing moved, and a worker that moves a
// contribution since changes ledger and accumulators by the same: what is
// lacking stays what it is. Only another mending changes it. Every mending goes
// to the same suffix and raises its count, so the condition that this count is
// as it was read keeps two from adding it twice, however many suffixes there are.
func mendSum(ctx context.Context, t *auditing.Table, r drift.Reading) (bool, error) {
	e := t.NewEvidence()
	if err := e.ReadRows(ctx, []drift.Suspect{r.Suspect}); err != nil {
		return false, err
	}
	g, total := groupOf(t, r.Suspect), totalOf(e, r.Suspect)
	if strconv.FormatInt(total.Operations, 10) != r.Fix.Seen {
		return false, nil
	}
	ahead, stuck, err := shownAhead(ctx, t, g, r.Fix.Keys)
	if err != nil {
		return false, err
	}
	key, c := state.AccumulatorKey(g, 0), table.NewExpression()
	condition := table.Whole(c.Same("operations", attributes.FromTable(e.Rows[key]["operations"])))
	lacks := audit.ParseAmount(r.Fix.Lacks)
	raised := max(1, ahead-total.Operations)
	add := c.Format("ADD %n %v, %n %v, %n %v",
		"value", number(lacks.Value), "members", table.Number(lacks.Members), "operations", table.Number(raised))
	items := []ddb.TransactWriteItem{t.Tables.UpdatePart(key, add, condition, c)}
	for _, torn := range total.torn[:min(len(total.torn), tornMax)] {
		row := e.Rows[torn]
		operations := state.CountOf(row["operations"])
		c := table.NewExpression()
		condition := table.Whole(c.SameAs(row, "value", "members", "operations"))
		if torn != key {
			items = append(items, t.Tables.UpdatePart(torn, reset(c, audit.Amount{}, operations), condition, c))
			continue
		}
		items[0] = t.Tables.UpdatePart(key, reset(c, lacks, operations+raised), condition, c)
	}
	items = append(items, stuck[:min(len(stuck), plan.TransactActionsMax-len(items))]...)
	return auditing.Mended(t.Tables.Transact(ctx, "mending the sum of "+r.Suspect.Group, []string{g.ID}, items))
}

// reset puts an accumulator in the place of a torn one.
func reset(c *table.Expression, a audit.Amount, operations int64) string {
	return c.Format("SET %n = %v, %n = %v, %n = %v",
		"value", number(a.Value), "members", table.Number(a.Members), "operations", table.Number(operations))
}

// shownAhead is a count of operations that no target of an aggregate shows yet. Of
// the targets whose stamp no count is raised above, the stamp is taken off.
func shownAhead(ctx context.Context, t *auditing.Table, g plan.GroupRef, targets []change.Key) (ahead int64, stuck []ddb.TransactWriteItem,
	err error) {
	targets = slices.DeleteFunc(slices.Clone(targets), func(k change.Key) bool { return !t.Tables.CanExist(k) })
	items, err := t.Tables.ReadItems(ctx, "reading what displays a sum", targets)
	highest := int64(0)
	for _, key := range targets {
		item, ok := items[key]
		if !ok {
			continue
		}
		shown := t.CountShown(g.Binding, key, g.Group, item)
		if shown <= audit.RaisedMax {
			highest = max(highest, shown)
			continue
		}
		c := table.NewExpression()
		condition, remove := table.Whole(c.Same(g.Stamp, item.Lookup(g.Stamp))), c.Format("REMOVE %n", g.Stamp)
		stuck = append(stuck, ddb.TransactWriteItem{Update: &ddb.Update{
			TableName: &t.Tables.Table, Key: t.Tables.ItemKey(key), UpdateExpression: &remove, ConditionExpression: &condition,
			ExpressionAttributeNames: c.Names, ExpressionAttributeValues: c.Values,
		}})
	}
	return highest + 1, stuck, err
}
