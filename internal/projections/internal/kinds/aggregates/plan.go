package aggregates

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
	First     int
	Last      change.Image
	Contested bool // another program put the attribute there: counted against the bound
}

// Effects implements plan.Feeder: a source, or each element of its list, adds to an aggregate.
func (*kind) Effects(b *plan.Binding, m *rules.Match, img change.Image, tell func(string, plan.Effect)) error {
	f := Of(b.Rule)
	zeroCounts := f.kind.zeroCounts ||
		b.Rule.Derives() ||
		b.Rule.HasPer()
	return b.Rule.ForEach(m, img, func(element string, m *rules.Match) error {
		c, ok, err := f.Contribution(m, img)
		if err == nil && ok && (zeroCounts || !c.Amount.IsZero()) {
			tell(element, plan.Effect{Kind: plan.Contribution, Amount: c.Amount, Group: c.Group, Per: c.Per})
		}
		return err
	})
}

// CanHave implements plan.Feeder.
func (*kind) CanHave(p *plan.Planner, b *plan.Binding, what string, f plan.Effect) bool {
	return f.Kind == plan.Contribution && (what != "") == b.Rule.Each.Given() && (f.Per != "") == b.Rule.HasPer() &&
		(b.Rule.ByUnique || p.IsTarget(b.Rule, change.ParseKey(f.Group)))
}

// Classify implements plan.Family: it asks for a roll-up where another program wrote the display attribute.
func (*kind) Classify(p *plan.Planner, pl *plan.Changes, b *plan.Binding, s *plan.Sides) bool {
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
	group, ok, err := Of(b.Rule).GroupOf(v.NewMatch, v.New)
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
	if plan.Stamped(b, context, v.Old) {
		plan.Note(&ru.Contested, v.Record.Key)
	}
	return true
}

// displays reports whether an item holds anything where a rule shows its aggregate.
func displays(b *plan.Binding, img change.Image) bool {
	return img.Lookup(b.Rule.Writes[0]).Kind() != change.KindAbsent
}

// strip asks for the display attribute to be taken off an item without a (good) unique value.
func strip(pl *plan.Changes, b *plan.Binding, v plan.View) bool {
	if !displays(b, v.New) {
		return false
	}
	ba := plan.PartOf[ungrouped](pl).OrPut(plan.ItemRule{Binding: b, Key: v.Record.Key}, ungroupedDisplay{First: v.Index})
	ba.Last = v.New
	ba.Contested = ba.Contested || v.Old != nil && !displays(b, v.Old)
	return true
}

// Rederive implements plan.Family.
func (k *kind) Rederive(_ *plan.Planner, pl *plan.Changes, b *plan.Binding, it *plan.Item) {
	if it.Scope >= plan.Itself && (it.Image != nil || b.Rule.Derives()) {
		k.Display(pl, b, it.Key, &it.Match, it.Image)
	}
}

// Display implements host.Gatherer.
func (*kind) Display(pl *plan.Changes, b *plan.Binding, key change.Key, m *rules.Match, img change.Image) {
	if b.Rule.Derives() {
		look(pl, b, key, m, img)
		return
	}
	if m.Entity != b.Rule.Target {
		return
	}
	present := displays(b, img)
	group, ok, err := Of(b.Rule).GroupOf(m, img)
	if err != nil || !ok {
		if present {
			plan.PartOf[ungrouped](pl).Put(plan.ItemRule{Binding: b, Key: key}, &ungroupedDisplay{Last: img})
		}
		return
	}
	ru := pl.Rollups.OrPut(plan.GroupRef{Binding: b, Group: group}, plan.Rollup{})
	ru.Present = ru.Present || present
	if ru.Seen == nil {
		ru.Seen = map[change.Key]change.Image{}
	}
	ru.Seen[key] = img
}

// Tell implements plan.Family: an image says nothing more than its effects.
func (*kind) Tell(*plan.Late, *plan.Binding, *rules.Match, change.Image) {}

// Words implements plan.Feeder.
func (*kind) Words(b *plan.Binding, f plan.Effect) plan.Words {
	write, what := rollUpText(b, f.Group), f.Amount.String()
	if f.Per != "" {
		what += " under " + f.Per
	}
	return plan.Words{What: what + " in " + f.Group, Undo: write, Redo: write}
}

func rollUpText(b *plan.Binding, group string) string {
	target := group
	if b.Rule.ByUnique {
		target = b.Rule.Target.Name + " with " + b.Rule.Target.Unique + " " + group
	}
	if b.Rule.Derives() {
		return "roll up " + b.Rule.Writes[0] + " of " + target + ", an item that is made or deleted with its members"
	}
	return "roll up " + b.Rule.Writes[0] + " of " + target
}

// Explain implements plan.Family.
func (*kind) Explain(pl *plan.Changes, b *plan.Binding, tell func(effect, write string)) {
	for g := range pl.Rollups.All() {
		if g.Binding == b {
			if b.Rule.Derives() {
				tell("a derived item came, went, or was written by another program", rollUpText(b, g.Group))
				continue
			}
			tell("its display attribute was written by another program", rollUpText(b, g.Group))
		}
	}
}
