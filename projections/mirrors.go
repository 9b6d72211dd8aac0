package projections

import (
	"context"

	"github.com/dynamill/dynamill/change"
)

// heal brings mirror items that somebody else wrote or deleted back to what their sources ask for.
func (w *work) heal(pl *plan) {
	standing, err := w.standing(&pl.heals)
	if err != nil {
		for _, h := range pl.heals.all() {
			w.failed(h.first, err)
		}
		return
	}
	for id, h := range pl.heals.all() {
		if standing[id] {
			continue
		}
		allowed, err := w.mayHeal(w.ctx, id.b, id.key, h.contested)
		if err == nil && allowed {
			err = w.healTarget(w.ctx, pl, id)
		}
		w.failed(h.first, err)
	}
}

// standing finds the mirror items that are as the ledger has them, so that
// nothing is to be done: every mirror item that the engine inserts comes by here.
func (w *work) standing(heals *asked[itemRule, heal]) (map[itemRule]bool, error) {
	sources := map[itemRule]change.Key{}
	var keys []stateKey
	for id := range heals.all() {
		if source, ok := id.b.rule.SourceKey(id.key); id.b.rule.Injective && ok {
			sources[id] = source
			keys = append(keys, entryKey(source))
		}
	}
	rows, err := w.readState(w.ctx, "reading the ledger entries of mirror items", keys)
	if err != nil {
		return nil, err
	}
	result := map[itemRule]bool{}
	for id, h := range heals.all() {
		source, ok := sources[id]
		if !ok {
			continue
		}
		ent, err := readEntry(rows[entryKey(source)])
		if err != nil {
			return nil, err
		}
		var f effect
		if ent != nil {
			f = ent.effects[id.b.id]
		}
		asked := f.kind == mirrored && f.target == id.key
		context, last := stampContext(w.incarnation, id.key, ""), h.last
		if last == nil {
			result[id] = !asked
			continue
		}
		s, ok := readStamp(last.Lookup(id.b.stamp), context)
		if asked {
			result[id] = ok && s.digest == f.digest && digestOf(id.b, last) == f.digest
		} else {
			result[id] = !ok // no source, and not ours: the application's own item
		}
	}
	return result, nil
}

// healTarget brings one mirror item to what its source asks for.
func (w *work) healTarget(ctx context.Context, pl *plan, id itemRule) error {
	if !id.b.rule.Injective {
		return w.deriveTarget(ctx, id.b, id.key)
	}
	source, ok := id.b.rule.SourceKey(id.key)
	if !ok {
		return nil
	}
	mv, err := w.readMoveOf(ctx, source)
	if err != nil {
		return err
	}
	mv.restore = map[string]change.Key{id.b.id: id.key}
	var failure error
	w.applyMoves(ctx, []*move{mv}, w.suffix, func(_ *move, err error) { failure = err })
	if failure == nil {
		pl.addRollups(mv, pl.heals.of(id).first)
	}
	return failure
}

// mayHeal counts one correction of what the engine had written, and reports
// whether it stays within the bound. Beyond it, another program fights for the
// attribute: the (item, rule) is parked.
func (e *Engine) mayHeal(ctx context.Context, b *binding, item change.Key, contested bool) (bool, error) {
	if !contested {
		return true, nil
	}
	n, err := e.countHeal(ctx, b, item)
	if err != nil {
		return false, err
	}
	if n <= e.healsMax {
		e.counters.Heals.Add(1)
		return true, nil
	}
	if n == e.healsMax+1 {
		e.logger.ErrorContext(ctx, "another program keeps overwriting a derived attribute: healing stops for a while",
			"rule", b.rule.Name, "item", item.String(), "corrections", e.healsMax, "within", healWindow)
	}
	return false, e.park(ctx, b, item, change.Position{}, contestedReason(b, e.healsMax))
}
