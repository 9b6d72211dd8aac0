package audit

import (
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/rules"
)

// Concerns are the tokens of all that a record may be the cause of: of nothing,
// if it leaves every attribute as it was that a rule reads or writes.
func (a *Auditor) Concerns(rec *change.Record, emit func(token string)) {
	if rec.Old != nil && rec.New != nil && !a.touches(rec.Old, rec.New) && !a.touches(rec.New, rec.Old) {
		return
	}
	emit(drift.KeyToken(rec.Key))
	for _, img := range []change.Image{rec.Old, rec.New} {
		if img != nil {
			a.Facts(rec.Key, img, func(f drift.Fact) { emit(f.About) })
		}
	}
}

// touches reports whether an attribute of x that concerns rules is another one in y.
func (a *Auditor) touches(x, y change.Image) bool {
	for name, v := range x.All() {
		if (a.concerned[name] || strings.HasPrefix(name, stamp.Prefix)) && !v.Equal(y.Lookup(name)) {
			return true
		}
	}
	return false
}

// concernedBy are the attributes that rules read or write, or tell items by.
func concernedBy(p *plan.Planner) map[string]bool {
	all := map[string]bool{}
	note := func(r *rules.Rule) {
		for _, name := range slices.Concat(r.Reads, r.JoinReads, r.Writes) {
			all[name] = true
		}
		for _, e := range []*rules.Entity{r.Source, r.Target} {
			if e == nil {
				continue
			}
			all[e.Unique] = true
			for _, eq := range e.Equals {
				all[eq.Attribute] = true
			}
		}
	}
	for _, r := range p.Set.Rules {
		note(r)
	}
	for _, b := range p.Formers() {
		note(b.Rule)
	}
	return all
}

// SumToken and LocatorToken are tokens of what several sources make together.
func SumToken(id, group string) string { return About(AboutSum, id, group) }

// LocatorToken is that of a locator.
func LocatorToken(id, value string) string { return About(AboutLocator, id, value) }

// MadeToken is the token of all that happens to an item that rules make.
func MadeToken(target change.Key) string { return About(AboutMade, "", target.String()) }
