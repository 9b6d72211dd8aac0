package aggregates

import (
	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/rules"
)

// Total is an aggregate's accumulators added up.
type Total struct {
	audit.Amount              // its Operations are those on the accumulators
	Changes      int64        // of the locator
	Locator      state.Set    // as it was read
	Targets      []change.Key // the one that displays it first, then those that lost the locator to it
	Err          *rules.ItemError
}

// Rows implements host.Keeper.
func (*kind) Rows() []string { return []string{state.AccumulatorRows} }

// totalKeys are the rows that aggregates are added up from.
func totalKeys(groups []plan.GroupRef) (keys []table.Key) {
	for _, g := range groups {
		for suffix := range g.Suffixes {
			keys = append(keys, state.AccumulatorKey(g, suffix))
		}
		if g.Rule.ByUnique {
			keys = append(keys, state.LocatorKey(g.Locator, g.Group))
		}
	}
	return keys
}

// AddUp adds up the rows of an aggregate.
func AddUp(g plan.GroupRef, rows map[table.Key]table.Row) Total {
	var t Total
	var values []decimal.Decimal
	for suffix := range g.Suffixes {
		r, ok := rows[state.AccumulatorKey(g, suffix)]
		if !ok {
			continue
		}
		a, err := state.ReadAccumulator(r)
		t.Operations += a.Operations
		t.Members += a.Members
		if err != nil {
			t.Err = plan.Overflow("the sum").Parked
		}
		values = append(values, a.Value)
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
	t.Locator = state.ReadSet(rows[state.LocatorKey(g.Locator, g.Group)], true)
	t.Changes = t.Locator.Changes
	for _, text := range t.Locator.Sources {
		t.Targets = append(t.Targets, change.ParseKey(text))
	}
	return t
}
