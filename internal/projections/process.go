package projections

import (
	"context"
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
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
		w = e.apply(ctx, pl, len(records))
		return nil
	})
	if err != nil {
		return 0, err
	}
	e.host.Counters.Records.Add(int64(w.Done))
	e.host.Counters.Relevant.Add(int64(pl.Relevant))
	seen := pl.Seen
	if w.Done < len(records) { // the others come again
		seen = e.planner.See(records[:w.Done])
	}
	e.host.Counters.Unmatched.Add(seen.Unmatched)
	e.seen.AddRecords(seen)
	return w.Done, w.Err
}

// work is the application of one plan. A part that fails holds up the record
// that asked for it first, and with it every later one; the other parts go on.
type work struct {
	*Engine
	*host.Run

	waiting []*plan.Move // whose due marks wait only for rules that are not live
}

// apply applies the parts of a plan for so many records one after the other. Any order is correct;
// this one saves requests: a roll-up after the moves sees all their sums, and what makes items
// comes before what writes on them.
func (e *Engine) apply(ctx context.Context, pl *plan.Changes, records int) *work {
	slot, release := e.slots.take()
	defer release()
	w := &work{Engine: e, Run: &host.Run{Host: e.host, Suffix: e.suffix + slot, Done: records}}
	w.moves(ctx, pl)
	for _, family := range slices.Backward(host.Having[host.Kind](Kinds)) {
		family.Apply(ctx, w.Run, pl)
	}
	w.rollUp(ctx, pl)
	w.takeOff(ctx, &pl.Leftovers)
	return w
}

// moves applies the ledger moves, and adds the roll-ups that they ask for to the plan.
func (w *work) moves(ctx context.Context, pl *plan.Changes) {
	var moves []*plan.Move
	for _, mv := range pl.Moves.All() {
		moves = append(moves, mv)
	}
	if len(moves) == 0 {
		return
	}
	broken := map[*plan.Move]bool{}
	w.ledger.Apply(ctx, moves, w.Suffix, func(mv *plan.Move, err error) {
		broken[mv] = true
		w.Failed(mv.First, err)
	})
	for _, mv := range moves {
		if !broken[mv] {
			pl.AddRollups(mv, mv.First)
		}
	}
}
