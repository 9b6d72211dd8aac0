package projections

import (
	"context"
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/guard"
	"github.com/dynamill/dynamill/projections/internal/plan"
)

// heal brings mirror items that somebody else wrote or deleted back to what their sources ask for.
func (w *work) heal(pl *plan.Changes) {
	standing, err := w.standing(&pl.Heals)
	if err != nil {
		for _, h := range pl.Heals.All() {
			w.failed(h.First, err)
		}
		return
	}
	for id, h := range pl.Heals.All() {
		if standing[id] {
			continue
		}
		allowed, err := w.mayHeal(w.ctx, id.Binding, id.Key, h.Contested)
		if err == nil && allowed {
			err = w.healTarget(w.ctx, pl, id)
		}
		w.failed(h.First, err)
	}
}

// standing finds the mirror items that are as the ledger has them, so that
// nothing is to be done: every mirror item that the engine inserts or deletes
// comes by here. Of one with claims that can only be told once nobody claims it.
func (w *work) standing(heals *plan.Asked[plan.ItemRule, plan.Heal]) (map[plan.ItemRule]bool, error) {
	sources := map[plan.ItemRule]change.Key{}
	var keys []stateKey
	for id := range heals.All() {
		if !id.Rule.Injective {
			keys = append(keys, claimsKey(id.Binding, id.Key))
		} else if source, ok := id.Rule.SourceKey(id.Key); ok {
			sources[id] = source
			keys = append(keys, entryKey(source))
		}
	}
	rows, err := w.readState(w.ctx, "reading the ledger entries of mirror items", keys)
	if err != nil {
		return nil, err
	}
	result := map[plan.ItemRule]bool{}
	for id, h := range heals.All() {
		source, ok := sources[id]
		if !ok {
			claims := rows[claimsKey(id.Binding, id.Key)]
			result[id] = !id.Rule.Injective && h.Last == nil && len(textsOf(claims["sources"])) == 0
			continue
		}
		ent, err := readEntry(rows[entryKey(source)])
		if err != nil {
			return nil, err
		}
		var f plan.Effect
		if ent != nil {
			f = ent.Effects[id.ID]
		}
		asked := f.Kind == plan.Mirrored && f.Target == id.Key
		context, last := plan.StampContext(w.incarnation, id.Key, ""), h.Last
		if last == nil {
			result[id] = !asked
			continue
		}
		s, ok := plan.ReadStamp(last.Lookup(id.Stamp), context)
		if asked {
			result[id] = ok && s.Digest == f.Digest && plan.DigestOf(id.Binding, last) == f.Digest
		} else {
			result[id] = !ok // no source, and not ours: the application's own item
		}
	}
	return result, nil
}

// healTarget brings one mirror item to what its source asks for.
func (w *work) healTarget(ctx context.Context, pl *plan.Changes, id plan.ItemRule) error {
	if !id.Rule.Injective {
		return w.deriveTarget(ctx, id.Binding, id.Key)
	}
	source, ok := id.Rule.SourceKey(id.Key)
	if !ok {
		return nil
	}
	mv, err := w.readMoveOf(ctx, source)
	if err != nil {
		return err
	}
	mv.Restore = map[string]change.Key{id.ID: id.Key}
	var failure error
	w.applyMoves(ctx, []*plan.Move{mv}, w.suffix, func(_ *plan.Move, err error) { failure = err })
	if failure == nil {
		pl.AddRollups(mv, pl.Heals.Of(id).First)
	}
	return failure
}

// mayHeal counts one correction of what the engine had written, and reports
// whether it stays within the bound. Beyond it, another program fights for the
// attribute: the (item, rule) is parked.
func (e *Engine) mayHeal(ctx context.Context, b *plan.Binding, item change.Key, contested bool) (bool, error) {
	if !contested {
		return true, nil
	}
	n, err := e.countHeal(ctx, b, item)
	if err != nil {
		return false, err
	}
	if n <= e.healsMax || guard.Off(guard.HealBound) {
		e.counters.Heals.Add(1)
		return true, nil
	}
	if n == e.healsMax+1 {
		e.logger.ErrorContext(ctx, "another program keeps overwriting a derived attribute: healing stops for a while",
			"rule", b.Rule.Name, "item", item.String(), "corrections", e.healsMax, "within", healWindow)
	}
	return false, e.park(ctx, b, item, contestedReason(b, e.healsMax))
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
	items, claims := wanted{table: e.table}, wanted{table: e.stateTable}
	var targets []change.Key
	var claimed []stateKey
	for _, mv := range moves {
		for _, id := range mv.New.IDs() {
			f := mv.New[id]
			if f.Kind != plan.Mirrored || mv.Old[id].String() != f.String() {
				continue
			}
			b := e.planner.ByID(id)
			check, targets = append(check, inForceMirror{mv, b, f}), append(targets, f.Target)
			if !b.Rule.Injective {
				claimed = append(claimed, claimsKey(b, f.Target))
			}
		}
	}
	if len(check) == 0 {
		return nil
	}
	items.keys, claims.keys = e.itemKeys(targets), stateKeys(claimed)
	found, err := e.read(ctx, "reading mirror items in force", items, claims)
	if err != nil {
		return err
	}
	standing, rows := e.byItemKey(found[e.table]), byStateKey(found[e.stateTable])
	for _, ch := range check {
		if !e.stands(ch, image(standing[ch.f.Target]), rows) {
			if ch.mv.Restore == nil {
				ch.mv.Restore = map[string]change.Key{}
			}
			ch.mv.Restore[ch.b.ID] = ch.f.Target
		}
	}
	return nil
}

// stands reports whether a mirror item is as its source's ledger entry has it. One
// that another source has won is that source's to look at.
func (e *Engine) stands(ch inForceMirror, img change.Image, claims map[stateKey]row) bool {
	if !ch.b.Rule.Injective {
		sources := textsOf(claims[claimsKey(ch.b, ch.f.Target)]["sources"])
		if !slices.Contains(sources, ch.mv.Key.String()) {
			return false
		}
		if slices.Min(sources) != ch.mv.Key.String() {
			return true
		}
	}
	return img != nil && plan.DigestOf(ch.b, img) == ch.f.Digest && plan.Stamped(ch.b, plan.StampContext(e.incarnation, ch.f.Target, ""), img)
}
