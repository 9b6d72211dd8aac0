package projections

import (
	"context"
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/projections/internal/kinds/mirrors"
	"github.com/dynamill/dynamill/projections/internal/plan"
	"github.com/dynamill/dynamill/projections/internal/state"
	"github.com/dynamill/dynamill/projections/internal/table"
)

// heal brings mirror items that another program wrote or deleted back to what their sources ask for.
func (w *work) heal(ctx context.Context, pl *plan.Changes) {
	right, err := w.alreadyRight(ctx, &plan.PartOf[mirrors.Changes](pl).Heals)
	if err != nil {
		for _, h := range plan.PartOf[mirrors.Changes](pl).Heals.All() {
			w.Failed(h.First, err)
		}
		return
	}
	for id, h := range plan.PartOf[mirrors.Changes](pl).Heals.All() {
		if right[id] {
			continue
		}
		allowed, err := w.host.MayHeal(ctx, id.Binding, id.Key, h.Contested)
		if err == nil && allowed {
			err = w.healTarget(ctx, pl, id, h)
		}
		w.Ended(ctx, h.First, id.Binding, id.Key, err)
	}
}

// alreadyRight finds the mirror items that are as the ledger has them, so that
// nothing is to be done: every mirror item that the engine inserts or deletes
// comes by here. Of one with claims that can only be told once no source claims it.
func (w *work) alreadyRight(ctx context.Context, heals *plan.Asked[plan.ItemRule, mirrors.Heal]) (map[plan.ItemRule]bool, error) {
	sources := map[plan.ItemRule]change.Key{}
	var keys []table.Key
	for id, h := range heals.All() {
		if id.Claimed() {
			keys = append(keys, state.ClaimsKey(id.Binding, id.Key))
		} else if source, ok := id.Rule.SourceKey(id.Key); ok {
			sources[id] = source
			keys = append(keys, state.EntryKey(source))
		}
		if h.Freed || plan.PlaceOf(id.Binding, id.Key, h.Last) == plan.PlaceOccupied {
			keys = append(keys, state.ParkedKey(state.ParkedID(id.ID, id.Key)))
		}
	}
	rows, err := w.tables.ReadState(ctx, "reading the ledger entries of mirror items", keys)
	if err != nil {
		return nil, err
	}
	result := map[plan.ItemRule]bool{}
	for id, h := range heals.All() {
		source, ok := sources[id]
		if !ok {
			claims := rows[state.ClaimsKey(id.Binding, id.Key)]
			parked := rows[state.ParkedKey(state.ParkedID(id.ID, id.Key))] != nil
			result[id] = id.Claimed() && len(table.TextsOf(claims["sources"])) == 0 && !parked && w.isRight(id.Binding, plan.Effect{}, h, id.Key, false)
			continue
		}
		ent, err := state.ReadEntry(w.planner, rows[state.EntryKey(source)])
		if err != nil {
			return nil, err
		}
		var f plan.Effect
		if ent != nil {
			f = ent.Effects[id.ID]
		}
		if f.Kind != plan.Mirrored || f.Target != id.Key {
			f = plan.Effect{}
		}
		parked := table.TextOf(rows[state.ParkedKey(state.ParkedID(id.ID, id.Key))]["code"]) == plan.OccupiedCode
		result[id] = w.isRight(id.Binding, f, h, id.Key, parked)
	}
	return result, nil
}

// isRight reports whether an item at a mirror target is as the ledger's effect (of no
// kind: none) asks for it. parked says that the rule is parked on an occupied target.
func (e *Engine) isRight(b *plan.Binding, f plan.Effect, h *mirrors.Heal, target change.Key, parked bool) bool {
	asked := f.Kind == plan.Mirrored
	place := plan.PlaceOf(b, target, h.Last)
	s, stamped := plan.ReadStamp(imageOr(h.Last).Lookup(b.Stamp), plan.StampContext(e.planner.Incarnation, target, ""))
	switch {
	case place == plan.PlaceFree:
		return !asked || f.Expired && !h.Deleted
	case !asked: // the application's own item stays, without our stamp
		return place != plan.PlaceMade && !stamped
	case place == plan.PlaceOccupied:
		return parked && !stamped && !h.Repark
	}
	return stamped && !parked && !f.Expired && s.Digest == f.Digest && plan.DigestOf(b, h.Last) == f.Digest
}

// imageOr is an image that can be looked into, also where there is none.
func imageOr(img change.Image) change.Image {
	if img == nil {
		return change.Item{}
	}
	return img
}

// healTarget brings one mirror item to what its source asks for.
func (w *work) healTarget(ctx context.Context, pl *plan.Changes, id plan.ItemRule, h *mirrors.Heal) error {
	if id.Claimed() {
		return w.deriveTarget(ctx, id.Binding, id.Key, h)
	}
	source, ok := id.Rule.SourceKey(id.Key)
	if !ok {
		return nil
	}
	mv, err := w.readMoveOf(ctx, source)
	if err != nil {
		return err
	}
	if h.Freed {
		mv.See(id.Key, h.Last) // the write clears what is parked there
	}
	if h.Expired {
		mv.Expire(id.ID)
	} else {
		mv.RestoreAt(id.ID, id.Key)
	}
	var failure error
	w.applyMoves(ctx, []*plan.Move{mv}, w.suffix, func(_ *plan.Move, err error) { failure = err })
	if failure == nil {
		pl.AddRollups(mv, h.First)
	}
	return failure
}

// inForceMirror is a mirror item that a move's ledger entry has in force and the item still asks for.
type inForceMirror struct {
	mv *plan.Move
	b  *plan.Binding
	f  plan.Effect
}

// checkMirrors finds mirror items in force that are not as the ledger has
// them, and has the moves of their sources write them again.
func (e *Engine) checkMirrors(ctx context.Context, moves []*plan.Move) error {
	var check []inForceMirror
	var targets []change.Key
	var rows []table.Key
	for _, mv := range moves {
		for _, id := range mv.New.IDs() {
			f := mv.New[id]
			if f.Kind != plan.Mirrored || mv.Old[id].String() != f.String() {
				continue
			}
			b := e.planner.ByID(id)
			check, targets = append(check, inForceMirror{mv, b, f}), append(targets, f.Target)
			if b.Claimed() {
				rows = append(rows, state.ClaimsKey(b, f.Target))
			}
			if len(b.Rule.Target.Equals) > 0 {
				rows = append(rows, state.ParkedKey(state.ParkedID(b.ID, f.Target)))
			}
		}
	}
	if len(check) == 0 {
		return nil
	}
	items, standing, err := e.tables.ReadBoth(ctx, "reading mirror items in force", targets, rows)
	if err != nil {
		return err
	}
	for _, ch := range check {
		img := table.Image(items[ch.f.Target])
		if !e.stands(ch, img, standing) {
			ch.mv.See(ch.f.Target, img)
			ch.mv.RestoreAt(ch.b.ID, ch.f.Target)
		}
	}
	return nil
}

// stands reports whether a mirror item is as its source's ledger entry has it. One
// that another source has won is that source's to look at.
func (e *Engine) stands(ch inForceMirror, img change.Image, rows map[table.Key]table.Row) bool {
	parked := table.TextOf(rows[state.ParkedKey(state.ParkedID(ch.b.ID, ch.f.Target))]["code"]) == plan.OccupiedCode
	f := ch.f
	if ch.b.Claimed() {
		claims := rows[state.ClaimsKey(ch.b, f.Target)]
		sources := table.TextsOf(claims["sources"])
		if !slices.Contains(sources, ch.mv.Key.String()) {
			return false
		}
		if slices.Min(sources) != ch.mv.Key.String() {
			return true
		}
		f.Expired = table.TextOf(claims["expired"]) == f.Digest && img == nil
	}
	return e.isRight(ch.b, f, &mirrors.Heal{Last: img, Repark: ch.mv.Repark}, ch.f.Target, parked)
}
