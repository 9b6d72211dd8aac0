package projections

import (
	"context"
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/rules"
)

// scope says how much of an item rederiving looks at.
type scope uint8

const (
	// sources is what seeding needs: effects, mirrors in force, references and
	// copies of the item. Every source of a mirror item comes by itself.
	sources scope = iota
	// everything also shows what is displayed on the item, and heals it where it is a mirror item.
	everything
)

// Rederive brings the effects of items to what their current state asks for,
// from the items themselves. It is safe beside live records in any order: the
// ledger entry is read before the item, and swapped only if nobody moved it.
func (e *Engine) Rederive(ctx context.Context, keys []change.Key) error {
	return e.rederive(ctx, keys, everything)
}

func (e *Engine) rederive(ctx context.Context, keys []change.Key, sc scope) error {
	for chunk := range slices.Chunk(keys, batchGetMax) {
		err := e.underRegistry(ctx, func() error { return e.rederiveChunk(ctx, chunk, sc) })
		if err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) rederiveChunk(ctx context.Context, keys []change.Key, sc scope) error {
	entries := make([]stateKey, len(keys))
	for i, k := range keys {
		entries[i] = entryKey(k)
	}
	rows, err := e.readState(ctx, "reading ledger entries", entries)
	if err != nil {
		return err
	}
	items, err := e.readItems(ctx, "reading items to rederive", keys)
	if err != nil {
		return err
	}
	pl := &plan{}
	var moves []*move
	for _, key := range keys {
		ent, err := e.ownEntry(rows[entryKey(key)])
		if err != nil {
			return err
		}
		mv := e.planRederive(pl, key, ent, image(items[key]), sc)
		moves = append(moves, mv)
	}
	if err := e.checkMirrors(ctx, moves); err != nil {
		return err
	}
	w := e.newWork(ctx, 0)
	defer w.release()
	w.moves(pl, slices.DeleteFunc(slices.Clone(moves), (*move).idle))
	w.heal(pl)
	w.fill(&pl.children)
	w.rollUp(pl)
	w.bare(&pl.bares)
	return w.err
}

// planRederive plans what an item, as it is now, asks for.
func (e *Engine) planRederive(pl *plan, key change.Key, ent *entry, img change.Image, sc scope) *move {
	mv := e.moveFrom(key, ent, img, sc)
	mv.repark = sc == everything && mv.new.hasParked()
	if img == nil {
		e.planMissing(pl, key, sc)
		return mv
	}
	m, ok := e.set.Identify(key, img)
	if !ok {
		return mv
	}
	for _, r := range m.Entity.Children {
		id := itemRule{e.byRule[r], key}
		f := &fill{}
		f.parent, f.refers, f.bad = referenceIn(r, &m, img)
		pl.children.put(id, f)
	}
	if sc != everything {
		return mv
	}
	for _, r := range m.Entity.Displays {
		e.planDisplay(pl, r, key, &m, img)
	}
	for _, r := range m.Entity.Mirrors {
		pl.heals.put(itemRule{e.byRule[r], key}, &heal{last: img})
	}
	return mv
}

// planMissing plans the healing of an item that is not there, for every mirror rule that could give it.
func (e *Engine) planMissing(pl *plan, key change.Key, sc scope) {
	if sc != everything {
		return
	}
	for _, r := range e.set.Rules {
		if r.Kind != rules.Mirror {
			continue
		}
		if _, ok := r.SourceKey(key); ok || !r.Injective {
			pl.heals.put(itemRule{e.byRule[r], key}, &heal{})
		}
	}
}

// planDisplay plans what one item displays under a rule, as it is now.
func (e *Engine) planDisplay(pl *plan, r *rules.Rule, key change.Key, m *rules.Match, img change.Image) {
	b := e.byRule[r]
	present := img.Lookup(r.Writes[0]).Kind() != change.KindAbsent
	group, ok, err := r.GroupOf(m, img)
	if err != nil || !ok {
		if present {
			pl.bares.put(itemRule{b, key}, &bare{last: img})
		}
		return
	}
	ref := groupRef{b, group}
	ru := pl.rollups.of(ref)
	if ru == nil {
		ru = &rollup{}
		pl.rollups.put(ref, ru)
	}
	ru.present = ru.present || present
}

// moveFrom is the move of a ledger entry that was read to what the item, read after it, asks for.
func (e *Engine) moveFrom(key change.Key, ent *entry, img change.Image, sc scope) *move {
	mv := &move{key: key, first: -1, new: e.effectsOf(key, img), seeding: sc == sources}
	e.groups(mv.new, mv.touch)
	mv.expect(ent, e.bindings)
	mv.to = versionAt(e.epoch, change.Position{})
	if ent != nil {
		mv.to, mv.rederived = ent.at.underEpoch(e.epoch), ent.rederived+1
	}
	return mv
}

// readMoveOf reads an item's ledger entry, then the item.
func (e *Engine) readMoveOf(ctx context.Context, key change.Key) (*move, error) {
	rows, err := e.readState(ctx, "reading the ledger entry of "+key.String(), []stateKey{entryKey(key)})
	if err != nil {
		return nil, err
	}
	ent, err := e.ownEntry(rows[entryKey(key)])
	if err != nil {
		return nil, err
	}
	return e.readMove(ctx, key, ent, everything)
}

// ownEntry decodes an entry that is to be swapped as it is. One that newer
// rules have written is not ours to swap: it would lose what only they ask for.
func (e *Engine) ownEntry(r row) (*entry, error) {
	ent, err := readEntry(r)
	if err == nil && ent != nil && ent.at >= versionAt(e.epoch+1, change.Position{}) {
		return nil, ErrEpochMoved
	}
	return ent, err
}

func (e *Engine) readMove(ctx context.Context, key change.Key, ent *entry, sc scope) (*move, error) {
	items, err := e.readItems(ctx, "reading "+key.String(), []change.Key{key})
	if err != nil {
		return nil, err
	}
	return e.moveFrom(key, ent, image(items[key]), sc), nil
}

// checkMirrors finds mirror items in force that are not as the ledger has
// them, and has the moves of their sources write them again.
func (e *Engine) checkMirrors(ctx context.Context, moves []*move) error {
	type inForce struct {
		mv *move
		b  *binding
		f  effect
	}
	var check []inForce
	var keys []change.Key
	for _, mv := range moves {
		for _, id := range mv.new.ids() {
			if f := mv.new[id]; f.kind == mirrored && mv.old[id].String() == f.String() {
				check = append(check, inForce{mv, e.byID[id], f})
				keys = append(keys, f.target)
			}
		}
	}
	if len(keys) == 0 {
		return nil
	}
	items, err := e.readItems(ctx, "reading mirror items in force", keys)
	if err != nil {
		return err
	}
	for _, ch := range check {
		img := image(items[ch.f.target])
		if img != nil && digestOf(ch.b, img) == ch.f.digest && stamped(ch.b, stampContext(e.incarnation, ch.f.target, ""), img) {
			continue
		}
		if ch.mv.restore == nil {
			ch.mv.restore = map[string]change.Key{}
		}
		ch.mv.restore[ch.b.id] = ch.f.target
	}
	return nil
}
