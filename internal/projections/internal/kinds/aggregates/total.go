package aggregates

import (
	"context"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/rules"
)

// Total is an aggregate's accumulators added up.
type Total struct {
	audit.Amount              // its Operations are those on the accumulators
	Changes      int64        // of the locator
	Targets      []change.Key // the one that displays it first, then those that lost the locator to it
	Expired      int64        // operations on all rows of a derived item when DynamoDB's time to live deleted it, if one of these rows says so
	Err          *rules.ItemError

	rows   map[table.Key]table.Row // that it was added up from, with others
	listed bool                    // as one with too many values
}

// accumulators adds to keys those of the rows that hold a group.
func accumulators(keys []table.Key, g plan.GroupRef) []table.Key {
	for suffix := range g.Suffixes {
		keys = append(keys, state.AccumulatorKey(g, suffix))
	}
	return keys
}

// Rows implements host.Keeper.
func (*kind) Rows() []string { return []string{state.AccumulatorRows} }

// totalKeys are the rows that an aggregate is added up from.
func totalKeys(g plan.GroupRef) []table.Key {
	keys := accumulators(nil, g)
	if g.Rule.ByUnique {
		keys = append(keys, state.LocatorKey(g.Locator, g.Group))
	}
	return keys
}

// AddUp adds up the rows of an aggregate.
func AddUp(g plan.GroupRef, rows map[table.Key]table.Row) Total {
	t, parts := Total{rows: rows}, map[string][]decimal.Decimal{}
	var values []decimal.Decimal
	for suffix := range g.Suffixes {
		r, ok := rows[state.AccumulatorKey(g, suffix)]
		if !ok {
			continue
		}
		a, err := state.ReadAccumulator(r)
		t.Operations += a.Operations
		t.Members += a.Members
		t.listed = t.listed || r[state.Listed] != nil
		t.Expired = max(t.Expired, state.CountOf(r[state.ExpiredAt]))
		if err != nil {
			t.Err = plan.Overflow("the sum").Parked
		}
		values = append(values, a.Value)
		if g.Rule.HasPer() && !t.addParts(parts, r) {
			t.Err = plan.Overflow("the sum").Parked
		}
	}
	if !t.sumParts(parts) {
		t.Err = plan.Overflow("the sum under one value").Parked
	}
	value, err := decimal.Sum(values...)
	if err != nil {
		t.Err = plan.Overflow("the sum").Parked
	}
	t.Value = value
	if !g.Rule.ByUnique {
		t.Targets = []change.Key{change.ParseKey(g.Group)}
		return t
	}
	locator := state.ReadSet(rows[state.LocatorKey(g.Locator, g.Group)], true)
	t.Changes = locator.Changes
	for _, text := range locator.Sources {
		t.Targets = append(t.Targets, change.ParseKey(text))
	}
	return t
}

// Consolidate implements host.Gatherer: it moves the whole sum of an aggregate, or of one value of `per`, into the accumulator of
// one write suffix. If one suffix took amounts and another gave them back, both hold values that
// cancel each other. Then neither has digits left for a new amount. Members stay where they are
// counted. It does nothing if another worker changes an accumulator meanwhile, or if no DynamoDB
// number and no row holds the sum.
func (*kind) Consolidate(ctx context.Context, r *host.Host, g plan.GroupRef, per string, suffix int) error {
	keys := accumulators(nil, g)
	rows, err := r.Tables.ReadState(ctx, "reading accumulators", keys)
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
		condition := table.Whole(c.Same("ops", attributes.FromTable(rows[key]["ops"])))
		set := c.Format("SET %n = %v ADD %n %v, %n %v", name, number(value), members, table.Number(0), "ops", table.Number(1))
		if g.Rule.HasPer() {
			set += c.Format(", %n %v, %n %v", "value", table.Number(0), "members", table.Number(0)) // the row may be new
		}
		items = append(items, r.Tables.UpdatePart(key, set, condition, c))
	}
	if sum.Err != nil || len(items) == 0 || len(items) > plan.TransactActionsMax {
		return nil
	}
	err = r.Tables.Transact(ctx, "bringing the accumulators of "+g.Group+" together", []string{g.ID}, items)
	if table.LostRace(err) || table.Refusal(err) != "" {
		return nil
	}
	return err
}
