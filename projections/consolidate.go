package projections

import (
	"context"
	"errors"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/projections/internal/plan"
)

// consolidate moves the whole sum of an aggregate into the accumulator of one write
// suffix. If one suffix took amounts and another gave them back, both hold values that
// cancel each other. Then neither has digits left for a new amount. It does nothing if
// another worker changes an accumulator meanwhile, or if no DynamoDB number holds the sum.
func (e *Engine) consolidate(ctx context.Context, g plan.GroupRef, suffix int) error {
	var keys []stateKey
	for i := range g.Suffixes {
		keys = append(keys, accumulatorKey(g, i))
	}
	rows, err := e.readState(ctx, "reading accumulators", keys)
	if err != nil {
		return err
	}
	total := addUp(g, rows)
	into := accumulatorKey(g, suffix%g.Rule.Suffixes())
	var items []ddb.TransactWriteItem
	for _, key := range keys {
		value := decimal.New(0)
		if key == into {
			value = total.value
		}
		held, err := decimal.Parse(textOf(rows[key]["value"]))
		if rows[key] == nil && key != into || err == nil && held.String() == value.String() {
			continue
		}
		c := newExpression()
		condition := whole(c.same("operations", attributes.FromTable(rows[key]["operations"])))
		set := c.sprintf("SET %n = %v ADD %n %v", "value", attributes.ToTable(change.Number(value.String())), "operations", numberValue(1))
		items = append(items, ddb.TransactWriteItem{Update: &ddb.Update{
			TableName: &e.stateTable, Key: key.attributes(), UpdateExpression: &set, ConditionExpression: &condition,
			ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
		}})
	}
	if total.err != nil || len(items) == 0 || len(items) > plan.TransactActionsMax {
		return nil
	}
	err = e.transact(ctx, "bringing the accumulators of "+g.Group+" together", []string{g.ID}, items)
	if canceled := new(ddb.TransactionCanceledException); errors.As(err, &canceled) && refusal(err) == "" {
		return nil
	}
	return err
}
