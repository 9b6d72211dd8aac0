package projections

import (
	"context"

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
		w = e.newWork(len(records))
		defer w.release()
		w.run(ctx, pl)
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
	release func()

	waiting []*plan.Move // whose due marks wait only for rules that are not live
}

func (e *Engine) newWork(records int) *work {
	slot, release := e.slots.take()
	return &work{Engine: e, Run: &host.Run{Host: e.host, Suffix: e.suffix + slot, Done: records}, release: release}
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
	w.applyKinds(ctx, pl)
	w.rollUp(ctx, pl)
	w.takeOff(ctx, &pl.Leftovers)
}

// moves applies the ledger moves, and adds the roll-ups that they ask for to the plan.
func (w *work) moves(ctx context.Context, pl *plan.Changes, moves []*plan.Move) {
	if len(moves) == 0 {
		return
	}
	broken := map[*plan.Move]bool{}
	w.ledger.Apply(ctx, moves, w.Suffix, func(mv *plan.Move, err error) {
		broken[mv] = true
		w.Failed(mv.First, err)
	})
	for _, mv := range moves {
		if broken[mv] {
			continue
		}
		pl.AddRollups(mv, mv.First)
	}
}

// heal has items that rules make brought back to what their sources ask for.
func (w *work) heal(ctx context.Context, pl *plan.Changes) {
	for _, m := range host.Having[host.Maker](Kinds) {
		m.Heal(ctx, w.Run, pl)
	}
}

// applyKinds has each kind apply what it planned by itself.
func (w *work) applyKinds(ctx context.Context, pl *plan.Changes) {
	for _, k := range host.Having[host.Kind](Kinds) {
		k.Apply(ctx, w.Run, pl)
	}
}
