// Package kinds lists the families of rule kinds.
package kinds

import (
	"github.com/dynamill/dynamill/projections/internal/kinds/aggregates"
	"github.com/dynamill/dynamill/projections/internal/kinds/copies"
	"github.com/dynamill/dynamill/projections/internal/kinds/mirrors"
	"github.com/dynamill/dynamill/projections/internal/plan"
	"github.com/dynamill/dynamill/rules"
)

// FamilyOf is the family of a rule's kind.
func FamilyOf(r *rules.Rule) plan.Family {
	switch r.Kind {
	case rules.Copy:
		return copies.Family{}
	case rules.Mirror:
		return mirrors.Family{}
	}
	return aggregates.Family{}
}
