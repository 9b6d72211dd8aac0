package projections

import (
	"context"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/projections/internal/kinds/aggregates"
	"github.com/dynamill/dynamill/projections/internal/kinds/copies"
	"github.com/dynamill/dynamill/projections/internal/plan"
)

// Process applies records. records[:done] are durable, roll-ups included; err
// says why the record after them is not. Records of one item must come in
// their order; beyond that, repetition, overlapping calls and any cut into
// batches are harmless (promise 2).
func (e *Engine) Process(ctx context.Context, records []change.Record) (done int, err error) {
	if len(records) == 0 {
		return 0, nil
	}
	var pl *plan.Changes
	var w *work
	err = e.registry.Under(ctx, func() error {
		pl = e.planner.Plan(records)
		w = e.newWork(len(records))
		defer w.release()
		w.run(ctx, pl)
		return nil
	})
	if err != nil {
		return 0, err
	}
	e.counters.Records.Add(int64(w.done))
	e.counters.Relevant.Add(int64(pl.Relevant))
	seen := pl.Seen
	if w.done < len(records) { // the others come again
		seen = e.planner.See(records[:w.done])
	}
	e.counters.Unmatched.Add(seen.Unmatched)
	e.seen.AddRecords(seen)
	return w.done, w.err
}

// work is the application of one plan. A part that fails holds up the record
// that asked for it first, and with it every later one; the other parts go on.
type work struct {
	*Engine
	suffix  int
	release func()

	done    int
	err     error
	waiting []*plan.Move // whose due marks wait only for rules that are not live
}

func (e *Engine) newWork(records int) *work {
	slot, release := e.slots.take()
	return &work{Engine: e, suffix: e.suffix + slot, release: release, done: records}
}

// failed notes that the part first asked for by a record did not succeed. Of
// several failures the one of the first record counts, and of that the one that was noted first.
func (w *work) failed(first int, err error) {
	if err == nil {
		return
	}
	if w.err == nil || first < w.done {
		w.done, w.err = max(0, min(first, w.done)), err
	}
}

// run applies the parts of a plan one after the other. Their order is an
// economy only: a roll-up after the moves sees all their sums.
func (w *work) run(ctx context.Context, pl *plan.Changes) {
	var moves []*plan.Move
	for _, mv := range pl.Moves.All() {
		moves = append(moves, mv)
	}
	w.moves(ctx, pl, moves)
	w.heal(ctx, pl)
	w.fanOut(ctx, &plan.PartOf[copies.Changes](pl).FanOuts)
	w.fill(ctx, &plan.PartOf[copies.Changes](pl).Fills)
	w.rollUp(ctx, pl)
	w.noteSources(moves)
	w.bare(ctx, &plan.PartOf[aggregates.Changes](pl).Bares)
	w.takeOff(ctx, &pl.Leftovers)
}

// moves applies the ledger moves, and adds the roll-ups that they ask for to the plan.
func (w *work) moves(ctx context.Context, pl *plan.Changes, moves []*plan.Move) {
	if len(moves) == 0 {
		return
	}
	broken := map[*plan.Move]bool{}
	w.applyMoves(ctx, moves, w.suffix, func(mv *plan.Move, err error) {
		broken[mv] = true
		w.failed(mv.First, err)
	})
	for _, mv := range moves {
		if broken[mv] {
			continue
		}
		pl.AddRollups(mv, mv.First)
	}
}
