package hot

import (
	"context"
	"time"

	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/groups"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/tally"
)

var (
	_ groups.Reader  = (*Form)(nil)
	_ host.Grouper   = (*kind)(nil)
	_ host.Debouncer = (*kind)(nil)
	_ host.Keeper    = (*kind)(nil)
)

// Rows implements host.Keeper.
func (*kind) Rows() []string {
	return []string{state.FoldedRows, state.LaneRows, state.CountExtentRows}
}

// DisplayEvery implements host.Debouncer: a rule may say it itself.
func (*kind) DisplayEvery(b *plan.Binding) time.Duration { return Of(b.Rule).displayEvery }

// Read implements groups.Reader: it adds up the rows of the generation that targets display. The operations of a later generation count for
// more than all those of an earlier one.
func (f *Form) Read(ctx context.Context, rd *table.Reader, g plan.GroupRef, t *groups.Total) error {
	generation := g.Counted.Load()
	amounts := []tally.Amount{t.Amount}
	torn := false
	err := rd.EachRow(ctx, "reading the rows of "+g.Group, state.FoldedOf(g, generation), func(r table.Row) {
		row := state.ReadFolded(r)
		amounts = append(amounts, row.Amount)
		torn = torn || row.Torn
	})
	t.Amount = tally.Sum(amounts...)
	if t.Overflow = t.Overflow || torn; t.Overflow {
		t.Err = effects.Overflow("the sum")
		t.Err.Reason += ": once it does, run `dynamill replay --recount " + g.Rule.Name + "`"
	}
	t.Operations += generation << stamp.GenerationShift
	return err
}
