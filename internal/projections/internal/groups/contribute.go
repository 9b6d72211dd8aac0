package groups

import (
	"context"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/tally"
)

// Consolidate moves the whole sum of an aggregate, or of one value of `per`, into the accumulator of
// one write suffix. If one suffix took amounts and another gave them back, both hold values that
// cancel each other. Then neither has digits left for a new amount. Members stay where they are
// counted. It does nothing if another worker changes an accumulator meanwhile, or if no DynamoDB
// number and no row holds the sum.
func Consolidate(ctx context.Context, h *host.Host, g plan.GroupRef, per string, suffix int) error {
	keys := Accumulators(nil, g)
	rows, err := h.Tables.ReadState(ctx, "reading accumulators", keys)
	if err != nil {
		return err
	}
	sum, name, members := AddUp(g, rows), "value", "members"
	whole := sum.Value
	if g.Rule.HasPer() {
		whole, name, members = sum.Parts[per].Value, audit.PartValue+per, audit.PartMembers+per
	}
	into := state.AccumulatorKey(g, suffix%g.Rule.Suffixes())
	var items []ddb.TransactWriteItem
	for _, key := range keys {
		value := decimal.New(0)
		if key == into {
			value = whole
		}
		held, err := decimal.Parse(table.TextOf(rows[key][name]))
		if rows[key][name] == nil && key != into || err == nil && held.String() == value.String() {
			continue
		}
		c := table.NewExpression()
		condition := table.Whole(c.SameAs(rows[key], "ops"))
		set := c.Format("SET %n = %v ADD %n %v, %n %v", name, state.Number(value), members, table.Number(0), "ops", table.Number(1))
		if g.Rule.HasPer() {
			set += c.Format(", %n %v, %n %v", "value", table.Number(0), "members", table.Number(0)) // the row may be new
		}
		items = append(items, h.Tables.UpdatePart(key, set, condition, c))
	}
	if sum.Err != nil || len(items) == 0 || len(items) > plan.TransactActionsMax {
		return nil
	}
	err = h.Tables.Transact(ctx, "bringing the accumulators of "+g.Group+" together", []string{g.ID}, items)
	if table.LostRace(err) || table.Refusal(err) != "" {
		return nil
	}
	return err
}

// Contribute is the part of a ledger transaction that adds a difference to an accumulator: that of the suffix, or of the one shift
// after it. The count of operations tells a later sum from an earlier one.
func Contribute(h *host.Host, s plan.Sum, suffix, shift int) ddb.TransactWriteItem {
	suffix %= s.Group.Rule.Suffixes()
	if shift > 0 {
		suffix = (suffix + shift) % s.Group.Suffixes
	}
	c := table.NewExpression()
	update := state.AddAmount(c, tally.Amount{Value: s.Delta, Members: s.Members}, 1)
	for _, p := range s.Parts {
		if !p.Delta.IsZero() || p.Members != 0 {
			update += c.Format(", %n %v, %n %v", audit.PartValue+p.Per, state.Number(p.Delta), audit.PartMembers+p.Per, table.Number(p.Members))
		}
	}
	return h.Tables.UpdatePart(state.AccumulatorKey(s.Group, suffix), update, "", c)
}
