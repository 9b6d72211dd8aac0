package groupaudit

import (
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/explaining"
	"github.com/dynamill/dynamill/internal/projections/internal/groups"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

var _ explaining.Family = Auditing{}

// StampScope implements explaining.Family: the group that the item displays.
func (Auditing) StampScope(b *plan.Binding, s *audit.Subject) (string, bool) {
	if s.Match.Entity != b.Rule.Target {
		return "", false
	}
	group, ok, err := b.Rule.GroupOf(&s.Match, s.Image)
	return groups.Scope(b, group), ok && err == nil
}

// RowsOf implements explaining.Family: the accumulators of the group that the item displays. They are kept without the item, too.
func (f Auditing) RowsOf(_ *explaining.Explainer, b *plan.Binding, s *audit.Subject) (rows []explaining.Row) {
	group, ok := f.StampScope(b, s)
	if (s.Image == nil || b.Rule.Derives()) && !b.Rule.ByUnique && b.Rule.Target.HasKey(s.Key) {
		group, ok = s.Key.String(), true
	}
	if !ok {
		return nil
	}
	for _, key := range groups.Accumulators(nil, plan.GroupRef{Binding: b, Group: group}) {
		rows = append(rows, explaining.Row{Key: key, Name: "accumulator", Rule: b.ID, Says: accumulatorWords(b)})
	}
	return rows
}

func accumulatorWords(b *plan.Binding) func(table.Row) string {
	return func(r table.Row) string {
		if r == nil {
			return ""
		}
		a, err := state.ReadAccumulator(r)
		if err != nil {
			return err.Error() + ": run `dynamill verify --repair`"
		}
		if b.Rule.HasPer() {
			a.Parts, _ = audit.ReadParts(attributes.ItemFromTable(r))
		}
		return textOf(b.Rule, a) + ", after " + printable.Counted(a.Operations, "operation")
	}
}
