package projections

import (
	"context"
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/leftovers"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/sightings"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// Rederive brings the effects of items to what their current state asks for. It is safe beside live records in any order: the
// ledger entry is read before the item, and swapped only if it has not moved.
func (e *Engine) Rederive(ctx context.Context, keys []change.Key) error {
	worker := e.background(repairs)
	return worker.inPieces(ctx, keys, func(keys []change.Key) error { return worker.rederive(ctx, keys, plan.Everything, nil, nil) })
}

// RederiveRecords rederives the items of records that cannot be applied: unreadable (nil images), or so late that later ones may
// have been applied. It rolls up the aggregates that the images name, which an attempt to apply them may have left undone.
// No earlier record of these items takes effect afterwards, where their positions are known; an unknown position is zero.
func (e *Engine) RederiveRecords(ctx context.Context, records []change.Record) error {
	lates := e.planner.Late(records)
	keys := slices.DeleteFunc(slices.Clone(lates.Keys()), func(k change.Key) bool { return !e.tables.CanExist(k) })
	for _, key := range keys {
		if err := e.dropForeignPosition(ctx, key, lates.Of(key)); err != nil {
			return err
		}
	}
	return e.rederive(ctx, keys, plan.Everything, lates, nil)
}

// dropForeignPosition forgets a position of another table's stream, later than any of this table's: it would hide true records.
func (e *Engine) dropForeignPosition(ctx context.Context, key change.Key, late *plan.Late) error {
	if late.Position.IsZero() || e.tables.KnowsStream(late.Position) {
		return nil
	}
	if err := e.tables.ReadStreamLabel(ctx); err != nil { // the stream may have been enabled anew
		return err
	}
	if !e.tables.KnowsStream(late.Position) {
		e.host.Logger.WarnContext(ctx, "ignoring the position of a record: it is of no stream of this table",
			"item", key.String(), "position", late.Position.String())
		late.Position = change.Position{}
	}
	return nil
}

// rederive rederives items, with what is known of late records, and notes on a page what it sees; both may be nil.
func (e *Engine) rederive(ctx context.Context, keys []change.Key, sc plan.Scope, lates *plan.OrderedMap[change.Key, plan.Late],
	seen *sightings.Page) error {
	for chunk := range slices.Chunk(keys, table.BatchGetMax) {
		again := false
		var done *rederived
		err := e.registry.Under(ctx, func() (err error) {
			done, err = e.rederiveChunk(ctx, chunk, sc, lates, again)
			again = true
			return err
		})
		if err != nil {
			return err
		}
		for _, mv := range done.waiting { // for rules that are not live now, after all was moved: a scan shows them
			if err := e.ledger.ClearDue(ctx, mv); err != nil {
				return err
			}
		}
		if seen != nil {
			seen.AddItems(e.planner, done.moves, done.items, done.Pointing)
		}
	}
	return nil
}

// rederived is how a few items were rederived.
type rederived struct {
	*application
	items map[change.Key]change.Item
	moves []*plan.Move // of every item
}

// rederiveChunk rederives a few items. again: rules went live since it last did; what was left to their showing is shown here.
func (e *Engine) rederiveChunk(ctx context.Context, keys []change.Key, sc plan.Scope, lates *plan.OrderedMap[change.Key, plan.Late],
	again bool) (*rederived, error) {
	entries := make([]table.Key, len(keys))
	for i, k := range keys {
		entries[i] = state.EntryKey(k)
	}
	rows, err := e.tables.ReadState(ctx, "reading ledger entries", entries)
	if err != nil {
		return nil, err
	}
	items, err := e.tables.ReadItems(ctx, "reading items to rederive", keys)
	if err != nil {
		return nil, err
	}
	pl := &plan.Changes{}
	var moves []*plan.Move
	for _, key := range keys {
		ent, err := e.ledger.Entry(ctx, rows[state.EntryKey(key)])
		if err != nil {
			return nil, err
		}
		var late plan.Late
		if known := lates.Of(key); known != nil {
			late = *known
		}
		img := table.Image(items[key])
		mv := e.planner.Rederive(pl, key, ent, img, sc, late)
		leftovers.PlanItem(e.planner, pl, key, img, sc)
		if mv.Idle() && (again || len(late.Touched) > 0 || late.Unread) {
			pl.AddRollups(mv, mv.First)
		}
		moves = append(moves, mv)
	}
	for _, m := range host.FamiliesWith[host.Maker](Kinds) {
		if err := m.Restore(ctx, e.host, moves); err != nil {
			return nil, err
		}
	}
	for _, mv := range moves {
		if !mv.Idle() {
			pl.Moves.Put(mv.Key, mv)
		}
	}
	w := e.apply(ctx, pl, 0, nil)
	return &rederived{w, items, moves}, w.Err
}
