package aggregates

import (
	"fmt"

	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/explaining"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

var _ explaining.Family = (*kind)(nil)

// StampScope implements explaining.Family: the group that the item displays.
func (*kind) StampScope(b *plan.Binding, s *audit.Subject) (string, bool) {
	if s.Match.Entity != b.Rule.Target {
		return "", false
	}
	group, ok, err := Of(b.Rule).GroupOf(&s.Match, s.Image)
	return within(b, group), ok && err == nil
}

// RowsOf implements explaining.Family: the accumulators of the group that the item displays. They are kept without the item, too.
func (k *kind) RowsOf(_ *explaining.Explainer, b *plan.Binding, s *audit.Subject) (rows []explaining.Row) {
	group, ok := k.StampScope(b, s)
	if (s.Image == nil || b.Rule.Derives()) && !b.Rule.ByUnique && b.Rule.Target.HasKey(s.Key) {
		group, ok = s.Key.String(), true
	}
	if !ok {
		return nil
	}
	for suffix := range b.Suffixes {
		key := state.AccumulatorKey(plan.GroupRef{Binding: b, Group: group}, suffix)
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
		value := a.Value.String()
		if parts, _ := audit.ReadParts(attributes.ItemFromTable(r)); b.Rule.HasPer() {
			value = mapText(mapOf(parts))
		}
		return saysOf(value, a)
	}
}

// saysOf says what an accumulator holds.
func saysOf(value string, a state.Accumulator) string {
	return fmt.Sprintf("%s from %s, after %s", value, printable.Counted(a.Members, "source"), printable.Counted(a.Operations, "operation"))
}
