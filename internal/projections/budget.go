package projections

import (
	"context"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/ledger"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/sweep"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/projections/internal/target"
)

// The background work that waits for the budget, as `status` and metrics name it.
const (
	fanOuts = "fan-outs"
	seeds   = "seeding"
	replays = "replay"
	repairs = "repairs"
)

// itemUnits is about what it takes to rederive an item of which effects change.
const itemUnits = 10

// background returns the engine as some background work uses it: what it writes is charged to the budget as that work's.
func (e *Engine) background(work string) *Engine {
	other := *e
	other.connect(e.tables.For(work), *e.host)
	return &other
}

// connect gives the engine its tables, and what writes to them.
func (e *Engine) connect(ts *table.Tables, h host.Host) {
	e.tables, e.host = ts, &h
	h.Tables, h.Targets = ts, &target.Writer{Tables: ts, ParkRefused: e.host.ParkRefused}
	e.ledger = ledger.New(e.host, e.registry.RaiseEpochAbove)
	h.Ledger = e.ledger
	e.sweep = &sweep.Sweep{Host: e.host, Kinds: Kinds, Entry: e.ledger.Entry, Rederive: func(ctx context.Context, items []change.Key) error {
		return e.rederive(ctx, items, plan.Itself, nil, nil)
	}}
}

// inPieces does background work on items, in pieces that the budget can pay.
func (e *Engine) inPieces(ctx context.Context, keys []change.Key, do func([]change.Key) error) error {
	for len(keys) > 0 {
		n, end, err := e.host.BeginPiece(ctx, len(keys), itemUnits)
		if err != nil {
			return err
		}
		err = do(keys[:n])
		if end(); err != nil {
			return err
		}
		keys = keys[n:]
	}
	return nil
}

// Budget returns how this engine keeps to its budget.
func (e *Engine) Budget() BudgetStats { return e.host.BudgetStats() }
