package groups

import (
	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/tally"
)

// Total is an aggregate's accumulators added up.
type Total struct {
	tally.Amount              // its Operations are those on the accumulators
	Changes      int64        // of the locator
	Targets      []change.Key // the one that displays it first, then those that lost the locator to it
	Expired      int64        // operations on all rows of a derived item when DynamoDB's time to live deleted it, if one of these rows says so
	Err          *rules.ItemError

	Rows   map[table.Key]table.Row // that it was added up from, with others
	Listed bool                    // among the parked records
	More   any                     // what a Reader has read
}

// Accumulators adds to keys those of the rows that hold a group.
func Accumulators(keys []table.Key, g plan.GroupRef) []table.Key {
	for suffix := range g.Suffixes {
		keys = append(keys, state.AccumulatorKey(g, suffix))
	}
	return keys
}

// TotalKeys are the rows that an aggregate is added up from.
func TotalKeys(g plan.GroupRef) []table.Key {
	keys := Accumulators(nil, g)
	if g.Rule.ByUnique {
		keys = append(keys, state.LocatorKey(g.Locator, g.Group))
	}
	return keys
}

// AddUp adds up the rows of an aggregate.
func AddUp(g plan.GroupRef, rows map[table.Key]table.Row) Total {
	t, parts := Total{Rows: rows}, map[string][]decimal.Decimal{}
	var values []decimal.Decimal
	for suffix := range g.Suffixes {
		r, ok := rows[state.AccumulatorKey(g, suffix)]
		if !ok {
			continue
		}
		a, err := state.ReadAccumulator(r)
		t.Operations += a.Operations
		t.Members += a.Members
		t.Listed = t.Listed || r[state.Listed] != nil
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

// addParts adds the parts that an accumulator holds to those of the others; false if one of them is torn.
func (t *Total) addParts(values map[string][]decimal.Decimal, row table.Row) bool {
	parts, readable := audit.ReadParts(attributes.ItemFromTable(row))
	if t.Parts == nil {
		t.Parts = tally.Parts{}
	}
	for per, p := range parts {
		values[per] = append(values[per], p.Value)
		t.Parts[per] = tally.Share{Members: t.Parts[per].Members + p.Members}
	}
	return readable
}

// sumParts adds up the parts of all accumulators; false if no number holds a result.
func (t *Total) sumParts(values map[string][]decimal.Decimal) bool {
	fits := true
	for per, all := range values {
		value, err := decimal.Sum(all...)
		t.Parts[per] = tally.Share{Value: value, Members: t.Parts[per].Members}
		fits = fits && err == nil
	}
	return fits
}

// CrowdedKey is the parked row of an aggregate with too many values.
func CrowdedKey(g plan.GroupRef) table.Key { return state.ParkedKey(audit.CrowdedID(g.ID, g.Group)) }
