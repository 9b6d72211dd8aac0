package groups

import (
	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/rules"
)

// ungrouped are what rules that add up ask for beside the ledger and the roll-ups: items
// that display an aggregate and belong to none.
type ungrouped = plan.OrderedMap[plan.ItemRule, ungroupedDisplay]

// ungroupedDisplay is an item that displays an aggregate although it has no unique value to find it by.
type ungroupedDisplay struct {
	First      int
	Last       change.Image
	Correction bool // a correction of a foreign write: it counts against the bound
}

// Classify implements plan.Family: it asks for a roll-up where another program wrote the display attribute.
func (Family) Classify(p *plan.Planner, pl *plan.Changes, b *plan.Binding, s *plan.Sides) bool {
	if b.Rule.Derives() {
		return classifyDerived(p, pl, b, s)
	}
	target := b.Rule.Target
	v, ok := s.As(target)
	if !ok || v.New == nil {
		return false
	}
	regrouped := b.Rule.ByUnique && !target.UniqueInKey() && v.Old != nil && !v.Old.Lookup(target.Unique).Equal(v.New.Lookup(target.Unique))
	if v.Old != nil && !regrouped && plan.Untouched(b, v.Old, v.New) {
		return false
	}
	group, ok, err := b.Rule.GroupOf(v.NewMatch, v.New)
	if err != nil || !ok {
		return strip(pl, b, v)
	}
	context := stamp.Context(p.Incarnation, v.Record.Key, group)
	if !regrouped && !plan.Foreign(b, context, v.Old, v.New) {
		return false
	}
	ru := pl.Rollups.OrPut(plan.GroupRef{Binding: b, Group: group}, plan.Rollup{First: v.Index})
	ru.Asked = true
	if displays(b, v.New) {
		ru.Present = true
	}
	plan.Note(&ru.Wrote, v.Record.Key)
	if isCorrection(b, context, v.Old, v.New) {
		plan.Note(&ru.Corrections, v.Record.Key)
	}
	return true
}

// isCorrection reports whether a record shows that another program overwrote what a rule displays. Two workers' displays under one version
// do not count: each may have read several rows at different times.
func isCorrection(b *plan.Binding, context string, old, new change.Image) bool {
	return plan.Stamped(b, context, old) && (new == nil || !plan.Tied(b, context, old, new))
}

// strip asks for the display attribute to be taken off an item without a (good) unique value.
func strip(pl *plan.Changes, b *plan.Binding, v plan.View) bool {
	if !displays(b, v.New) {
		return false
	}
	u := plan.PartOf[ungrouped](pl).OrPut(plan.ItemRule{Binding: b, Key: v.Record.Key}, ungroupedDisplay{First: v.Index})
	u.Last = v.New
	u.Correction = u.Correction || v.Old != nil && !displays(b, v.Old)
	return true
}

// Rederive implements plan.Family.
func (Family) Rederive(_ *plan.Planner, pl *plan.Changes, b *plan.Binding, it *plan.Item) {
	if it.Scope >= plan.Itself && (it.Image != nil || b.Rule.Derives()) {
		Display(pl, b, it.Key, &it.Match, it.Image)
	}
}

// Display plans what an item displays under a rule, as the item is now. Of a rule that makes items together with others, it also plans
// to look at those to which the item contributes.
func Display(pl *plan.Changes, b *plan.Binding, key change.Key, m *rules.Match, img change.Image) {
	if b.Rule.Derives() {
		look(pl, b, key, m, img)
		return
	}
	if m.Entity != b.Rule.Target {
		return
	}
	present := displays(b, img)
	group, ok, err := b.Rule.GroupOf(m, img)
	if err != nil || !ok {
		if present {
			plan.PartOf[ungrouped](pl).Put(plan.ItemRule{Binding: b, Key: key}, &ungroupedDisplay{Last: img})
		}
		return
	}
	ru := pl.Rollups.OrPut(plan.GroupRef{Binding: b, Group: group}, plan.Rollup{})
	ru.Present = ru.Present || present
	see(ru, key, img)
}

// RollUpText says what the roll-up of a group writes.
func RollUpText(b *plan.Binding, group string) string {
	target := group
	if b.Rule.ByUnique {
		target = b.Rule.Target.Name + " with " + b.Rule.Target.Unique + " " + group
	}
	if b.Rule.Derives() {
		return "roll up " + plan.Listed(b.Rule.Writes) + " of " + target + ", an item that is made or deleted with its members"
	}
	return "roll up " + plan.Listed(b.Rule.Writes) + " of " + target
}

// Explain implements plan.Family.
func (Family) Explain(pl *plan.Changes, b *plan.Binding, tell func(effect, write string)) {
	for g := range pl.Rollups.All() {
		if g.Binding == b {
			if b.Rule.Derives() {
				tell("a derived item came, went, or was written by another program", RollUpText(b, g.Group))
				continue
			}
			tell("its display attribute was written by another program", RollUpText(b, g.Group))
		}
	}
}
