// Package groupaudit is the audit of groups and their displays: what items and accumulators say of them, where these differ, and how
// that is mended. It knows no kind; what a display shows is for the Form of the rule to say. It keeps promise 1 in sight.
package groupaudit

import (
	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/internal/groups"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/tally"
)

// Form is a groups.Form that an audit can compare, and tell people of.
type Form interface {
	groups.Form
	// Shown is what a target's attributes show, as displays are compared; "" for nothing.
	Shown(values []change.Value) string
	// Text is what an attribute shows, as people read it; "" for nothing.
	Text(v change.Value) string
	// Summed says what a group adds up to, to people; "" if that is no more than how many sources it has.
	Summed(a tally.Amount) string
}

// Collector is a Form whose targets show some of the members of a group.
type Collector interface {
	// Collect gathers the members of a group, in the order of their rows.
	Collect() Collection
}

// Collection are those members of a group that its target shows.
type Collection interface {
	// Add takes the next member, by the digest of what is shown of it.
	Add(digest string)
	// Shown is what a target must show, as displays are compared.
	Shown() string
}

// MemberRow is the kind of drift of a member row.
const MemberRow drift.Kind = "member row"

// Auditing is what the families of kinds that show groups have in common in an audit. It holds no state.
type Auditing struct{}

func formOf(r *rules.Rule) Form { return r.Form.(Form) }

// Shown is what an item shows under a rule, as displays are compared.
func Shown(b *plan.Binding, img change.Image) string {
	return formOf(b.Rule).Shown(plan.ValuesOf(b.Rule, img))
}

// Wanted is what the target of a group shows that adds up to an amount.
func Wanted(b *plan.Binding, a tally.Amount) string {
	return formOf(b.Rule).Shown(formOf(b.Rule).Values(groups.Total{Amount: a}))
}
