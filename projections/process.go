package projections

import (
	"context"

	"github.com/dynamill/dynamill/change"
)

// Process applies records. records[:done] are durable, roll-ups included; err
// says why the record after them is not. Records of one item must come in
// their order; beyond that, repetition, overlapping calls and any cut into
// batches are harmless (promise 2).
func (e *Engine) Process(ctx context.Context, records []change.Record) (done int, err error) {
	if len(records) == 0 {
		return 0, nil
	}
	var pl *plan
	var w *work
	err = e.underRegistry(ctx, func() error {
		pl = e.planner().plan(records)
		w = e.newWork(ctx, len(records))
		defer w.release()
		w.run(pl)
		return nil
	})
	if err != nil {
		return 0, err
	}
	e.counters.Records.Add(int64(w.done))
	e.counters.Relevant.Add(int64(pl.relevant))
	e.counters.Unmatched.Add(int64(pl.unmatched))
	return w.done, w.err
}

// work is the application of one plan. A part that fails holds up the record
// that asked for it first, and with it every later one; the other parts go on.
type work struct {
	*Engine
	ctx     context.Context
	suffix  int
	release func()

	done int
	err  error
}

func (e *Engine) newWork(ctx context.Context, records int) *work {
	slot, release := e.slots.take()
	return &work{Engine: e, ctx: ctx, suffix: e.suffix + slot, release: release, done: records}
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
func (w *work) run(pl *plan) {
	var moves []*move
	for _, mv := range pl.moves.all() {
		moves = append(moves, mv)
	}
	w.moves(pl, moves)
	w.heal(pl)
	w.fanOut(&pl.parents)
	w.fill(&pl.children)
	w.rollUp(pl)
	w.bare(&pl.bares)
}

// moves applies the ledger moves, and adds the roll-ups that they ask for to the plan.
func (w *work) moves(pl *plan, moves []*move) {
	if len(moves) == 0 {
		return
	}
	broken := map[*move]bool{}
	w.applyMoves(w.ctx, moves, w.suffix, func(mv *move, err error) {
		broken[mv] = true
		w.failed(mv.first, err)
	})
	for _, mv := range moves {
		if broken[mv] {
			continue
		}
		w.countParked(mv)
		pl.addRollups(mv, mv.first)
	}
}

// addRollups adds what a move touched to what is to be rolled up.
func (pl *plan) addRollups(mv *move, first int) {
	mv.rollups(func(g groupRef) {
		ru := pl.rollups.of(g)
		if ru == nil {
			ru = &rollup{first: first}
			pl.rollups.put(g, ru)
		}
		ru.first = min(ru.first, first)
		if mv.marked() {
			ru.marks = append(ru.marks, mv)
		}
	})
}

func (w *work) countParked(mv *move) {
	if !mv.new.hasParked() {
		return
	}
	for _, id := range mv.new.ids() {
		if f := mv.new[id]; f.kind == parked && mv.old[id].kind != parked {
			w.counters.Parked.Add(1)
			w.logger.Warn("parked", "rule", id, "item", mv.key.String(), "code", f.parked.Code, "reason", f.parked.Reason)
		}
	}
}

// marked reports whether the item's entry holds a due mark to be cleared after the roll-ups.
func (mv *move) marked() bool {
	return len(mv.due) > 0 && (mv.markAt() == mv.to || len(mv.entry.due) > 0)
}
