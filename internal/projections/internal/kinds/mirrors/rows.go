package mirrors

import (
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/explaining"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

var _ explaining.Family = kind{}

// StampScope implements explaining.Family: no parent and no group.
func (kind) StampScope(b *plan.Binding, s *audit.Subject) (string, bool) {
	return "", b.Rule.Target.HasKey(s.Key)
}

// RowsOf implements explaining.Family: the claims of the item, as a mirror item.
func (kind) RowsOf(_ *explaining.Explainer, b *plan.Binding, s *audit.Subject) []explaining.Row {
	if !b.Claimed() || !b.Rule.Target.HasKey(s.Key) {
		return nil
	}
	return []explaining.Row{{Key: state.ClaimsKey(b, s.Key), Name: "claims", Rule: b.ID, Says: func(r table.Row) string {
		set := state.ReadSet(r, false)
		text := explaining.SetWords("items that ask for this mirror item", set, "gives its content")
		if text != "" && set.Expired != "" {
			text += "; DynamoDB's time to live deleted it"
		}
		return text
	}}}
}
