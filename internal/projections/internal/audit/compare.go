package audit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/internal/leftovers"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
)

// CompareAttributes says which attributes of an item do not hold what they should. One write mends them all.
func CompareAttributes(f drift.Finding, names []string, want []change.Value, item change.Image) (all []drift.Finding) {
	for i, name := range names {
		found := item.Lookup(name)
		if want[i].Equal(found) {
			continue
		}
		f.What, f.Attribute, f.Expected, f.Found = drift.Wrong, name, Text(want[i]), Text(found)
		switch {
		case found.Kind() == change.KindAbsent:
			f.What = drift.Missing
		case want[i].Kind() == change.KindAbsent:
			f.What = drift.Surplus
		}
		all = append(all, f)
		f.WriteUnits = 0
	}
	return all
}

// CompareLeftover says what a rule left on an item on which it does not write any more.
func (a *Auditor) CompareLeftover(b *plan.Binding, key change.Key, item change.Image) []drift.Finding {
	for id, left := range leftovers.On(a.Planner, key, item).All() {
		if id.Binding != b {
			continue
		}
		f := drift.Finding{
			Rule: b.Rule.Name, Kind: drift.Leftover, What: drift.Surplus, Item: key, Attribute: b.Stamp,
			Found: Text(item.Lookup(b.Stamp)), WriteUnits: UnitsOf(item),
		}
		if left.Whole {
			f.Attribute, f.Found = "", "the whole item"
		} else if len(left.Names) > 0 {
			f.Attribute, f.Found = left.Names[0], Text(item.Lookup(left.Names[0]))
		}
		return []drift.Finding{f}
	}
	return nil
}

// TransactionUnitsMin is what a write of a small row takes in a transaction.
const TransactionUnitsMin = 2

// textMax is how much of a value is shown.
const textMax = 120

// Text is a value as people read it; "" if it is absent.
func Text(v change.Value) string {
	switch v.Kind() {
	case change.KindAbsent:
		return ""
	case change.KindString:
		return shorten(fmt.Sprintf("%q", v.Text()))
	case change.KindNumber:
		return v.Text()
	case change.KindBool:
		return fmt.Sprint(v.Bool())
	case change.KindBinary:
		return fmt.Sprintf("%d bytes", len(v.Text()))
	case change.KindNull:
		return "null"
	case change.KindMap:
		return shorten("{" + ItemText(v.Map(), slices.Sorted(maps.Keys(v.Map()))) + "}")
	}
	var members []string
	for _, m := range v.List() {
		members = append(members, Text(m))
	}
	return shorten("[" + strings.Join(members, ", ") + "]")
}

func shorten(text string) string {
	if len(text) <= textMax {
		return text
	}
	return strings.ToValidUTF8(text[:textMax], "") + "..."
}

// ItemText is what an item holds in these attributes, as people read it.
func ItemText(item map[string]change.Value, names []string) string {
	var parts []string
	for _, name := range names {
		if text := Text(item[name]); text != "" {
			parts = append(parts, name+": "+text)
		}
	}
	return shorten(strings.Join(parts, ", "))
}

// unitBytes is what one write unit covers (DynamoDB developer guide, "DynamoDB read and write operations").
const unitBytes = 1024

// UnitsOf are the write units that an item takes as it is, at least one.
func UnitsOf(item change.Image) float64 {
	size := 0
	if it, ok := item.(change.Item); !ok || it != nil {
		for name, v := range item.All() {
			size += len(name) + v.Size()
		}
	}
	return float64(max(1, (size+unitBytes-1)/unitBytes))
}
