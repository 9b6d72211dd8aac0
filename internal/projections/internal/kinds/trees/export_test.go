package trees

import (
	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/children"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/rules"
)

// LinkIn is how an image of an item refers to its parent.
func LinkIn(r *rules.Rule, m *rules.Match, img change.Image) children.Link {
	return kind{}.Link(&plan.Binding{Rule: r}, m, img)
}
