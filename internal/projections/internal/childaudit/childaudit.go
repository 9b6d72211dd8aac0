// Package childaudit is the audit of children: what items and reference rows say of a parent and its children, where these differ, and how
// that is mended. It knows no kind; what a parent gives, and what a child holds of that, is for the Family of the rule to say. It finds
// breaches of promise 1.
package childaudit

import (
	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/children"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
)

// Family is a children.Family that an audit can compare, and tell people of.
type Family interface {
	children.Family
	// Drift is the sort of drift of a child that does not hold what its parent gives.
	Drift() drift.Kind
	// Gives tells what a parent gives; nil: it does not exist.
	Gives(p *plan.Planner, b *plan.Binding, key change.Key, parent change.Image) string
	// Holds tells what a child holds of that.
	Holds(p *plan.Planner, b *plan.Binding, s *audit.Subject, l children.Link) string
	// Agree reports whether a child holds what its parent gives.
	Agree(b *plan.Binding, gives, holds string) bool
	// Alone tells facts about an item of the children's entity that refers to no parent.
	Alone(p *plan.Planner, b *plan.Binding, s *audit.Subject, l children.Link, emit func(drift.Fact))
	// Takes tells people what a child does with its parent: "takes its copies from".
	Takes() string
}

// Auditing is what a kind embeds beside children.Following to be audited; K is the kind, a Family. It has the roles audit.Family,
// auditing.Family and explaining.Family.
type Auditing[K any] struct{}

func familyOf(b *plan.Binding) Family { return b.Family.(Family) }
