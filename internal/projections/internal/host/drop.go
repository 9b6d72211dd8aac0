package host

import (
	"context"

	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// Drop deletes an item that was made for a retired rule. The item carries the engine's mark and the retired rule's stamp, as they
// were seen (promise 8). It stays if a rule that makes items and has not retired has it by now.
func (h *Host) Drop(ctx context.Context, id plan.ItemRule, left *plan.Leftover) error {
	c := table.NewExpression()
	condition := c.Format("%n = %v", plan.MadeAttribute, table.Text(plan.MadeMark(id.Key))) + c.Same(id.Stamp, left.Last.Lookup(id.Stamp))
	own := stamp.Context(h.Planner.Incarnation, id.Key, "")
	for _, b := range left.Unless {
		condition += c.Format(" AND (attribute_not_exists(%n) OR NOT begins_with(%n, %v))", b.Stamp, b.Stamp, table.Text(own))
	}
	h.Counters.Made.Add(1)
	return h.Tables.DeleteItem(ctx, id.ID, "deleting an item of a former rule, "+id.Key.String(), id.Key, condition, c)
}
