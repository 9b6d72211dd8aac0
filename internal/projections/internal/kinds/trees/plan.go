package trees

import (
	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/childaudit"
	"github.com/dynamill/dynamill/internal/projections/internal/children"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/explaining"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/rules"
)

var (
	_ childaudit.Family = kind{}
	_ host.Kind         = kind{}
	_ host.Parker       = kind{}
	_ host.Postponer    = kind{}
	_ host.Sweeper      = kind{}
	_ explaining.Family = kind{}
)

// Link implements children.Family: an item whose name cannot be read is not read at all.
func (k kind) Link(b *plan.Binding, m *rules.Match, img change.Image) children.Link {
	l := k.Following.Link(b, m, img)
	if img == nil || l.Bad != nil {
		return l
	}
	if _, _, err := nameOf(b, m, img); err != nil {
		return children.Link{IsChild: true, Bad: effects.AsItemError(err)}
	}
	return l
}

// Reads implements children.Family.
func (kind) Reads(b *plan.Binding) []string { return Of(b.Rule).reads() }

// Concerns implements children.Family: what the parent shows changed. A worker's own write on it counts. What another program wrote
// over it does not: a worker corrects that, and its write counts.
func (kind) Concerns(p *plan.Planner, b *plan.Binding, v plan.View) bool {
	now := viewOf(p, b, v.Record.Key, v.New)
	return (now.known || !now.exists) && !now.equal(viewOf(p, b, v.Record.Key, v.Old))
}

// Overwritten implements children.Family.
func (kind) Overwritten(p *plan.Planner, b *plan.Binding, v plan.View, l children.Link) (due, correction bool) {
	if plan.Changed(Of(b.Rule).reads(), v.Old, v.New) {
		return true, false
	}
	context := contextOf(p, v.Record.Key, l)
	return plan.Foreign(b, context, v.Old, v.New), plan.Stamped(b, context, v.Old)
}

// Needs implements children.Family: every item shows something, or is marked to show nothing.
func (kind) Needs(*plan.Binding, change.Image) bool { return true }

// Explain implements plan.Family.
func (kind) Explain(pl *plan.Changes, b *plan.Binding, tell func(effect, write string)) {
	writes := plan.Listed(b.Rule.Writes)
	children.Told{
		Changed: writes + " changed", FanOut: "set " + writes + " on every " + b.Rule.Target.Name,
		Linked: "set " + writes + " from what it shows", Unlinked: "set " + writes + " as a root's",
		Bad: "cannot be read",
	}.Explain(pl, b, tell)
}

// Takes implements childaudit.Family.
func (kind) Takes() string { return "is below" }
