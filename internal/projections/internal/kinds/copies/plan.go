package copies

import (
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/childaudit"
	"github.com/dynamill/dynamill/internal/projections/internal/children"
	"github.com/dynamill/dynamill/internal/projections/internal/explaining"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
)

var (
	_ children.Spreader = kind{}
	_ childaudit.Family = kind{}
	_ host.Kind         = kind{}
	_ host.Postponer    = kind{}
	_ host.Sweeper      = kind{}
	_ host.Grouper      = kind{}
	_ explaining.Family = kind{}
)

// Reads implements children.Family.
func (kind) Reads(b *plan.Binding) []string { return b.Rule.JoinReads }

// Concerns implements children.Family: a copied attribute changed.
func (kind) Concerns(_ *plan.Planner, b *plan.Binding, v plan.View) bool {
	if v.Old != nil && v.New != nil && !plan.Changed(b.Rule.Reads, v.Old, v.New) {
		return false
	}
	return !slices.EqualFunc(Of(b.Rule).Given(v.Old), Of(b.Rule).Given(v.New), change.Value.Equal)
}

// Overwritten implements children.Family.
func (kind) Overwritten(p *plan.Planner, b *plan.Binding, v plan.View, l children.Link) (due, correction bool) {
	context := stamp.Context(p.Incarnation, v.Record.Key, l.Parent.String())
	switch {
	case plan.Untouched(b, v.Old, v.New) || l.Refers && !plan.Foreign(b, context, v.Old, v.New):
		return false, false
	case l.Refers:
		return true, plan.Stamped(b, context, v.Old)
	}
	return plan.Changed(b.Rule.Writes, v.Old, v.New), plan.Holds(b, v.Old) // if not, it is our own removal of the stamp
}

// Needs implements children.Family.
func (kind) Needs(b *plan.Binding, img change.Image) bool { return plan.Holds(b, img) }

// Explain implements plan.Family.
func (kind) Explain(pl *plan.Changes, b *plan.Binding, tell func(effect, write string)) {
	writes := plan.Listed(b.Rule.Writes)
	children.Told{
		Changed: plan.Listed(b.Rule.Reads) + " changed",
		FanOut:  "set " + writes + " on every " + b.Rule.Target.Name,
		Linked:  "set " + writes + " from it", Unlinked: "take " + writes + " off",
	}.Explain(pl, b, tell)
}

// Takes implements childaudit.Family.
func (kind) Takes() string { return "takes its copies from" }

// copied is the kind of drift of an attribute that a rule copies.
const copied drift.Kind = "copy"

// Drift implements childaudit.Family.
func (kind) Drift() drift.Kind { return copied }

// Gives implements childaudit.Family.
func (kind) Gives(_ *plan.Planner, b *plan.Binding, _ change.Key, parent change.Image) string {
	return change.Digest(Of(b.Rule).Given(parent)...)
}

// Holds implements childaudit.Family.
func (kind) Holds(_ *plan.Planner, b *plan.Binding, s *audit.Subject, _ children.Link) string {
	return change.Digest(plan.ValuesOf(b.Rule, s.Image)...)
}

// Agree implements childaudit.Family.
func (kind) Agree(_ *plan.Binding, gives, holds string) bool { return gives == holds }

// Alone implements childaudit.Family.
func (kind) Alone(_ *plan.Planner, b *plan.Binding, s *audit.Subject, l children.Link, emit func(drift.Fact)) {
	isThere := func(name string) bool { return s.Image.Lookup(name).Kind() != change.KindAbsent }
	if l.Bad == nil && slices.ContainsFunc(b.Rule.Writes, isThere) {
		audit.EmitSuspect(copied, b.ID, s.Key, emit)
	}
}
