package host

import (
	"context"
	"time"

	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/projections"
)

const (
	// fanOutMin is how many children a fan-out writes at once however much is spent: a task costs about as many units.
	fanOutMin = 5
	// reportEvery is how long a process whose work waits says no more of it.
	reportEvery = 10 * time.Second
)

// FanOutNow is how many children a fan-out writes at once: for a record as many as the budget can pay at this moment; background
// work has waited for its piece already.
func (h *Host) FanOutNow() int {
	if h.Tables.Work != "" {
		return h.FanOutMax
	}
	return max(h.Tables.Budget.Left(h.FanOutMax), min(fanOutMin, h.FanOutMax))
}

// BeginPiece waits until the budget pays for a piece of background work. things is how many are wanted, n how many are granted. Call end
// after the piece.
func (h *Host) BeginPiece(ctx context.Context, things, unitsEach int) (n int, end func(), err error) {
	n, end, err = h.Tables.Budget.Begin(ctx, h.Tables.Work, things, unitsEach)
	if err == nil && h.Tables.Budget.ReportDue(reportEvery) {
		row := state.BudgetRow(h.Process, h.BudgetStats(), h.Now())
		if _, failed := h.Tables.PutState(ctx, "", "noting what waits for the budget", row, "", table.NewExpression()); failed != nil {
			h.Logger.WarnContext(ctx, "cannot write what waits for the budget: `status` does not show it", "error", failed)
		}
	}
	return n, end, err
}

// Waits reports whether some background work has waited for the budget lately.
func (h *Host) Waits(work string) bool {
	_, waits := h.Tables.Budget.Use()
	_, waiting := waits[work]
	return waiting
}

// BudgetStats is how the process keeps to its budget.
func (h *Host) BudgetStats() projections.BudgetStats {
	b := h.Tables.Budget
	spending, waits := b.Use()
	return projections.BudgetStats{UnitsPerSecond: b.PerSecond(), Spending: spending, Waits: waits}
}
