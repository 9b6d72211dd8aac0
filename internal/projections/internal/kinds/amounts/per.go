package amounts

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/tally"
)

// A rule with `per` adds up apart what its sources add under each value. All values of a target share its accumulators, so
// that one count of operations is the version of the whole map (docs/adr/0030-all-values-of-a-target-share-a-row.md).

// displayMap is what a target of a rule with `per` shows: absent for too many values.
func (f *Form) displayMap(a tally.Amount) change.Value {
	shown := mapOf(a.Parts)
	if f.IsCrowded(a) || f.hidesZero && len(shown.Map()) == 0 {
		return change.Value{}
	}
	return shown
}

// IsCrowded implements groups.Tidier: it reports whether an aggregate has more values than a target shows.
func (f *Form) IsCrowded(a tally.Amount) bool {
	return f.Rule.HasPer() && len(mapOf(a.Parts).Map()) > rules.PerValuesMax
}

// mapOf has the sum of each value that some source has.
func mapOf(parts tally.Parts) change.Value {
	all := map[string]change.Value{}
	for per, p := range parts {
		if p.Members > 0 {
			all[per] = change.Number(p.Value.String())
		}
	}
	return change.Map(all)
}

// shownMap is a map as displays are compared: in the order of its values, each of which is escaped.
func shownMap(v change.Value) string {
	var all []string
	for per, n := range v.Map() {
		text := n.Kind().String()
		if d, err := decimal.Parse(n.Text()); n.Kind() == change.KindNumber && err == nil {
			text = d.String()
		}
		all = append(all, url.PathEscape(per)+": "+text)
	}
	slices.Sort(all)
	return "{" + strings.Join(all, ", ") + "}"
}

// mapText is a map as people read it, whole: two maps may differ in their last value.
func mapText(v change.Value) string {
	var all []string
	for _, per := range slices.Sorted(maps.Keys(v.Map())) {
		all = append(all, per+": "+audit.Text(v.Map()[per]))
	}
	return "{" + strings.Join(all, ", ") + "}"
}

// Text implements groupaudit.Form: it is what an attribute displays, as people read it; "" for nothing.
func (f *Form) Text(v change.Value) string {
	if f.Rule.HasPer() && v.Kind() == change.KindMap {
		return mapText(v)
	}
	return audit.Text(v)
}

// Summed implements groupaudit.Form: it says what an amount is, to people.
func (f *Form) Summed(a tally.Amount) string {
	if f.Rule.HasPer() {
		return mapText(mapOf(a.Parts))
	}
	return a.Value.String()
}

// TooMany says why an aggregate is listed among the parked records.
func (f *Form) TooMany() *rules.ItemError {
	return &rules.ItemError{Code: audit.PerTooMany, Reason: fmt.Sprintf(
		"items have more than %d values of %s: %s is absent until there are fewer", rules.PerValuesMax, f.Rule.Per.Ours, f.Rule.Writes[0])}
}
