package audit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/projections/internal/plan"
	"github.com/dynamill/dynamill/rules"
)

// EffectChange is one effect that differs.
type EffectChange struct {
	ID         string
	What       drift.What
	Want, Have string
}

// CompareEffects says where the effects in force are not those asked for, in the order of ids.
func CompareEffects(want, have plan.Effects) []EffectChange {
	var all []EffectChange
	ids := append(want.IDs(), have.IDs()...)
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		w, wants := want[id]
		h, has := have[id]
		c := EffectChange{ID: id, What: drift.Wrong, Want: w.String(), Have: h.String()}
		switch {
		case wants && has && c.Want == c.Have:
			continue
		case !has:
			c.What = drift.Missing
		case !wants:
			c.What = drift.Surplus
		}
		all = append(all, c)
	}
	return all
}

// CompareCopies says which copies on a child are not what its parent gives.
func CompareCopies(b *plan.Binding, key change.Key, child change.Image, want []change.Value) []drift.Finding {
	var all []drift.Finding
	for i, c := range b.Rule.Attributes {
		found := child.Lookup(c.As)
		if found.Equal(want[i]) {
			continue
		}
		all = append(all, drift.Finding{
			Rule: b.Rule.Name, Kind: drift.Copy, What: whatOf(want[i], found), Item: key, Attribute: c.As,
			Expected: Text(want[i]), Found: Text(found),
		})
	}
	if len(all) > 0 {
		all[0].WriteUnits = units(child) // one write mends them all
	}
	return all
}

func whatOf(want, found change.Value) drift.What {
	switch {
	case found.Kind() == change.KindAbsent:
		return drift.Missing
	case want.Kind() == change.KindAbsent:
		return drift.Surplus
	}
	return drift.Wrong
}

// MirrorSide is what one rule has to do with a mirror item.
type MirrorSide struct {
	*plan.Binding
	Asked   *rules.MadeItem // what it asks for; nil: nothing
	Expired bool            // DynamoDB's time to live deleted just that
}

// CompareMirror says how the item at a mirror's key differs from what its rules ask for.
// If none asks for it, an item that the engine made is surplus, and so is a stamp.
func (a *Auditor) CompareMirror(key change.Key, item change.Item, sides []MirrorSide) []drift.Finding {
	var all []drift.Finding
	for _, s := range sides {
		f := drift.Finding{Rule: s.Rule.Name, Kind: drift.Mirror, Item: key, WriteUnits: 2 * (1 + units(item))}
		place := plan.PlaceOf(s.Binding, key, imageOf(item))
		stamped := a.stamped(s.Binding, key, imageOf(item))
		switch {
		case s.Asked == nil && (place == plan.PlaceMade || stamped):
			f.What, f.Found = drift.Surplus, itemText(item, s.Rule.Writes)
			all = append(all, f)
		case place == plan.PlaceOccupied && stamped:
			f.What, f.Attribute, f.Found = drift.Surplus, s.Stamp, Text(item.Lookup(s.Stamp))
			all = append(all, f)
		case s.Asked == nil, place == plan.PlaceOccupied, s.Expired && item == nil:
		case item == nil:
			f.What, f.Expected = drift.Missing, itemText(s.Asked.Attributes, s.Rule.Writes)
			all = append(all, f)
		default:
			all = append(all, a.compareContent(f, s, item)...)
		}
	}
	return all
}

// imageOf is an item as an image: nil if there is none.
func imageOf(item change.Item) change.Image {
	if item == nil {
		return nil
	}
	return item
}

func (a *Auditor) compareContent(f drift.Finding, s MirrorSide, item change.Item) []drift.Finding {
	var all []drift.Finding
	for _, name := range s.Rule.Writes {
		want, found := s.Asked.Attributes[name], item.Lookup(name)
		if !want.Equal(found) {
			f.What, f.Attribute, f.Expected, f.Found = whatOf(want, found), name, Text(want), Text(found)
			all = append(all, f)
			f.WriteUnits = 0
		}
	}
	if len(all) == 0 && !a.stamped(s.Binding, f.Item, item) {
		f.What, f.Attribute, f.Expected, f.Found = drift.Missing, s.Stamp, "a stamp", Text(item.Lookup(s.Stamp))
		all = append(all, f)
	}
	return all
}

// CompareLeftover says what a rule left on an item on which it does not write any more.
func (a *Auditor) CompareLeftover(b *plan.Binding, key change.Key, item change.Image) []drift.Finding {
	for id, left := range a.LeftoversOn(key, item).All() {
		if id.Binding != b {
			continue
		}
		f := drift.Finding{
			Rule: b.Rule.Name, Kind: drift.Leftover, What: drift.Surplus, Item: key, Attribute: b.Stamp,
			Found: Text(item.Lookup(b.Stamp)), WriteUnits: units(item),
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

// CompareDisplay says whether an item displays a sum; "" is nothing, to which 0 is equal.
func CompareDisplay(b *plan.Binding, key change.Key, group string, item change.Image, want string) []drift.Finding {
	name := b.Rule.Writes[0]
	found := shown(item.Lookup(name))
	if found == want {
		return nil
	}
	f := drift.Finding{
		Rule: b.Rule.Name, Kind: drift.Display, What: drift.Wrong, Item: key, Group: group, Attribute: name,
		Expected: want, Found: Text(item.Lookup(name)), WriteUnits: units(item),
	}
	switch {
	case f.Found == "":
		f.What = drift.Missing
	case want == "" && group == "":
		f.What = drift.Surplus
	case want == "":
		f.Expected = "0 or nothing"
	}
	return []drift.Finding{f}
}

// StampAhead is what to say of a stamp with a higher count than was ever
// counted, as after the state table was restored: no sum would be shown before
// that count is reached.
func StampAhead(b *plan.Binding, key change.Key, group string, counted int64, item change.Image) drift.Finding {
	return drift.Finding{
		Rule: b.Rule.Name, Kind: drift.Display, What: drift.Wrong, Item: key, Group: group, Attribute: b.Stamp,
		Expected: fmt.Sprintf("a count of at most %d", counted), Found: Text(item.Lookup(b.Stamp)), WriteUnits: transactionUnitsMin,
	}
}

// transactionUnitsMin is what a write of a small row takes in a transaction.
const transactionUnitsMin = 2

// SumText is an amount as displays are compared: "" for 0.
func SumText(amount string) string { return countOf(amount) }

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
		return shorten("{" + itemText(v.Map(), slices.Sorted(maps.Keys(v.Map()))) + "}")
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

func itemText(item map[string]change.Value, names []string) string {
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

// units are the write units that an item takes as it is, at least one.
func units(item change.Image) float64 {
	size := 0
	if it, ok := item.(change.Item); !ok || it != nil {
		for name, v := range item.All() {
			size += len(name) + v.Size()
		}
	}
	return float64(max(1, (size+unitBytes-1)/unitBytes))
}
