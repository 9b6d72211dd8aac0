package hot

import (
	"context"

	"github.com/dynamill/dynamill/internal/projections/internal/groups"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

var (
	_ groups.Reader = (*Form)(nil)
	_ host.Deferrer = (*kind)(nil)
	_ host.Keeper   = (*kind)(nil)
)

// Rows implements host.Keeper.
func (*kind) Rows() []string { return []string{state.FoldedRows, state.LaneRows, state.MarkRows} }

// MayWait implements host.Deferrer.
func (*kind) MayWait(*plan.Binding) bool { return true }

// Read implements groups.Reader: it adds up the rows of the generation that targets display. The operations of a later generation count for
// more than all those of an earlier one.
func (f *Form) Read(ctx context.Context, rd *table.Reader, g plan.GroupRef, t *groups.Total) error {
	generation := g.Counted.Load()
	c := table.NewExpression()
	in := rd.StateQuery(state.FoldedCondition(c, g, generation), c)
	err := rd.QueryPages(ctx, "reading the rows of "+g.Group, in, func(rows []table.Row) error {
		for _, r := range rows {
			row := state.ReadFolded(r)
			t.Amount = t.Add(row.Amount)
			if row.Torn {
				t.Beyond = true
			}
		}
		return nil
	})
	if t.Beyond {
		t.Err = plan.Overflow("the sum").Parked
	}
	t.Operations += generation << stamp.GenerationShift
	return err
}
