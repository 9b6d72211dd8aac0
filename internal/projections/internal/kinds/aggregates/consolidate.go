package aggregates

import (
	"context"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// Consolidate implements host.Gatherer: it moves the whole sum of an aggregate into the accumulator of one write
// suffix. If one suffix took amounts and another gave them back, both hold values that
// cancel each other. Then neither has digits left for a new amount. Members stay where they are
// counted. It does nothing if another worker changes an accumulator meanwhile, or if no DynamoDB
// number holds the sum.
func (*kind) Consolidate(ctx context.Context, r *host.Host, g plan.GroupRef, suffix int) error {
	var keys []table.Key
	for i := range g.Suffixes {
		keys = append(keys, state.AccumulatorKey(g, i))
	}
	rows, err := r.Tables.ReadState(ctx, "reading accumulators", keys)
	if err != nil {
		return err
	}
	sum := AddUp(g, rows)
	into := state.AccumulatorKey(g, suffix%g.Rule.Suffixes())
	var items []ddb.TransactWriteItem
	for _, key := range keys {
		value := decimal.New(0)
		if key == into {
			value = sum.Value
		}
		held, err := decimal.Parse(table.TextOf(rows[key]["value"]))
		if rows[key] == nil && key != into || err == nil && held.String() == value.String() {
			continue
		}
		c := table.NewExpression()
		condition := table.Whole(c.Same("ops", attributes.FromTable(rows[key]["ops"])))
		set := c.Format("SET %n = %v ADD %n %v, %n %v", "value", number(value), "members", table.Number(0), "ops", table.Number(1))
		items = append(items, r.Tables.UpdatePart(key, set, condition, c))
	}
	if sum.Err != nil || len(items) == 0 || len(items) > plan.TransactActionsMax {
		return nil
	}
	err = r.Tables.Transact(ctx, "bringing the accumulators of "+g.Group+" together", []string{g.ID}, items)
	if table.LostRace(err) {
		return nil
	}
	return err
}
