package aggregates

import (
	"context"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/auditing"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/projections/internal/target"
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
func mendSum(ctx context.Context, e *auditing.Evidence, r drift.Reading) (bool, error) {
	g, total := groupOf(e.Table, r.Suspect), totalOf(e, r.Suspect)
	ahead, stuck, err := shownAhead(ctx, e.Table, g, r.Fix.Keys)
	if err != nil {
		return false, err
	}
	key, c := state.AccumulatorKey(g, 0), table.NewExpression()
	condition := table.Whole(c.Same("ops", attributes.FromTable(e.Rows[key]["ops"])))
	lacks := audit.ParseAmount(r.Fix.Lacks)
	raised := max(1, ahead-total.Operations)
	add := c.Format("ADD %n %v, %n %v, %n %v",
		"value", number(lacks.Value), "members", table.Number(lacks.Members), "ops", table.Number(raised))
	items := []ddb.TransactWriteItem{e.Tables.UpdatePart(key, add, condition, c)}
	for _, torn := range total.torn[:min(len(total.torn), tornMax)] {
		row := e.Rows[torn]
		operations := state.CountOf(row["ops"])
		c := table.NewExpression()
		condition := table.Whole(c.SameAs(row, "value", "members", "ops"))
		if torn != key {
			items = append(items, e.Tables.UpdatePart(torn, reset(c, audit.Amount{}, operations), condition, c))
			continue
		}
		items[0] = e.Tables.UpdatePart(key, reset(c, lacks, operations+raised), condition, c)
	}
	items = append(items, stuck[:min(len(stuck), plan.TransactActionsMax-len(items))]...)
	return e.Transact(ctx, "mending the sum of "+r.Suspect.Group, g.ID, items)
}

// reset puts an accumulator in the place of a torn one.
func reset(c *table.Expression, a audit.Amount, operations int64) string {
	return c.Format("SET %n = %v, %n = %v, %n = %v",
		"value", number(a.Value), "members", table.Number(a.Members), "ops", table.Number(operations))
}

// shownAhead is a count of operations that no target of an aggregate shows yet. Of
// the targets whose stamp no count is raised above, the stamp is taken off.
func shownAhead(ctx context.Context, t *auditing.Table, g plan.GroupRef, targets []change.Key) (ahead int64, stuck []ddb.TransactWriteItem,
	err error) {
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
		w := target.On(g.Binding, "", key)
		w.TakeOff(g.Stamp)
		w.Condition = table.Whole(w.Same(g.Stamp, item.Lookup(g.Stamp)))
		stuck = append(stuck, w.InTransaction(t.Tables.Reader))
	}
	return highest + 1, stuck, err
}
