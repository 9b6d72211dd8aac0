package groups

import (
	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
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
	t, torn := Total{Rows: rows}, false
	var amounts []tally.Amount
	for suffix := range g.Suffixes {
		r, ok := rows[state.AccumulatorKey(g, suffix)]
		if !ok {
			continue
		}
		a, err := state.ReadAccumulator(r)
		torn = torn || err != nil
		if g.Rule.HasPer() {
			parts, readable := audit.ReadParts(attributes.ItemFromTable(r))
			a.Parts, torn = parts, torn || !readable
		}
		amounts = append(amounts, a)
		t.Listed = t.Listed || r[state.Listed] != nil
		t.Expired = max(t.Expired, state.CountOf(r[state.ExpiredAt]))
	}
	t.Amount = tally.Sum(amounts...)
	switch {
	case t.Overflow && g.Rule.HasPer():
		t.Err = effects.Overflow("the sum under one value")
	case t.Overflow || torn:
		t.Err = effects.Overflow("the sum")
	}
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

// CrowdedKey is the parked row of an aggregate with too many values.
func CrowdedKey(g plan.GroupRef) table.Key { return state.ParkedKey(audit.CrowdedID(g.ID, g.Group)) }
