package plan

import (
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/rules"
)

// Planner turns records into intended changes, without any I/O.
//
// Each record is classified by itself; runs of one item's records are then
// taken together. A run is dropped only if every record of it can be dropped,
// the ledger moves to the position of the last one that changed effects, and roll-up targets
// and old parents are taken from all images: judging a run by its first and
// last image alone loses work (docs/architecture.md, "Compaction").
type Planner struct {
	*Bindings
	Incarnation string
	Epoch       int
	CanExist    func(change.Key) bool // whether the table can hold an item under a key; nil: any
}

// Plan works out what records ask for.
func (p *Planner) Plan(records []change.Record) *Changes {
	pl := &Changes{}
	for i := range records {
		p.classify(pl, &records[i], i)
	}
	return pl
}

// sides are one record as one entity's rules see it: an image of another
// entity counts as none.
type sides struct {
	record   *change.Record
	index    int
	old, new change.Image
	om, nm   *rules.Match
}

// classify adds to the plan what one record asks for.
func (p *Planner) classify(pl *Changes, rec *change.Record, index int) {
	var om, nm rules.Match
	var oldOK, newOK bool
	if rec.Old != nil {
		om, oldOK = p.Set.Identify(rec.Key, rec.Old)
	}
	if rec.New != nil {
		nm, newOK = p.Set.Identify(rec.Key, rec.New)
	}
	relevant := rec.New != nil && p.leftovers(pl, rec.Key, index, rec.New, nm.Entity)
	relevant = rec.New != nil && p.formerly(pl, rec.Key, index, rec.Old, rec.New, nm.Entity) || relevant
	for _, b := range p.mirrors {
		if b.Rule.Target.HasKey(rec.Key) {
			relevant = p.classifyMirror(pl, rec, index, b) || relevant
		}
	}
	p.see(&pl.Seen, rec.Key, rec.New, &nm, &om)
	if !oldOK && !newOK {
		if relevant {
			pl.Relevant++
		}
		return
	}
	relevant = p.classifyLedger(pl, rec, index, &om, &nm) || relevant
	if newOK && (!oldOK || om.Entity == nm.Entity) {
		s := sides{record: rec, index: index, new: rec.New, nm: &nm}
		if oldOK {
			s.old, s.om = rec.Old, &om
		}
		relevant = p.classifyEntity(pl, s, nm.Entity) || relevant
	} else {
		if oldOK {
			relevant = p.classifyEntity(pl, sides{record: rec, index: index, old: rec.Old, om: &om}, om.Entity) || relevant
		}
		if newOK {
			relevant = p.classifyEntity(pl, sides{record: rec, index: index, new: rec.New, nm: &nm}, nm.Entity) || relevant
		}
	}
	if relevant {
		pl.Relevant++
	}
}

// classifyLedger plans the move of the item's ledger entry.
func (p *Planner) classifyLedger(pl *Changes, rec *change.Record, index int, om, nm *rules.Match) bool {
	if !FeedsLedger(om.Entity) && !FeedsLedger(nm.Entity) {
		return false
	}
	if om.Entity == nm.Entity && rec.Old != nil && rec.New != nil && !readsChanged(om.Entity, rec.Old, rec.New) {
		return false
	}
	old, new := p.effectsOf(rec.Key, rec.Old), p.effectsOf(rec.Key, rec.New)
	if old.equal(new) {
		return false
	}
	mv := pl.Moves.Of(rec.Key)
	if mv == nil {
		mv = &Move{Key: rec.Key, First: index, Old: old}
		pl.Moves.Put(rec.Key, mv)
	}
	mv.New, mv.To, mv.Position = new, VersionAt(p.Epoch, rec.Position), rec.Position
	p.groups(old, mv.touch)
	p.groups(new, mv.touch)
	p.relocate(mv, old, new)
	return true
}

// FeedsLedger reports whether items of an entity have ledger entries.
func FeedsLedger(e *rules.Entity) bool { return e != nil && (len(e.Sources) > 0 || e.Located) }

// readsChanged reports whether a record changed an attribute on which effects of this entity depend.
func readsChanged(e *rules.Entity, old, new change.Image) bool {
	for _, r := range e.Sources {
		if changed(r.Reads, old, new) {
			return true
		}
	}
	return e.Located && !e.UniqueInKey() && !old.Lookup(e.Unique).Equal(new.Lookup(e.Unique))
}

func (p *Planner) classifyEntity(pl *Changes, s sides, e *rules.Entity) bool {
	relevant := false
	for _, r := range e.Displays {
		relevant = p.classifyDisplay(pl, s, p.Of(r)) || relevant
	}
	for _, r := range e.Parents {
		relevant = p.classifyParent(pl, s, p.Of(r)) || relevant
	}
	for _, r := range e.Children {
		relevant = p.classifyChild(pl, s, p.Of(r)) || relevant
	}
	return relevant
}

// classifyDisplay asks for a roll-up where another program wrote the display attribute.
func (p *Planner) classifyDisplay(pl *Changes, s sides, b *Binding) bool {
	if s.new == nil {
		return false
	}
	regrouped := b.Rule.ByUnique && !b.Rule.Target.UniqueInKey() && s.old != nil && !s.old.Lookup(b.Rule.Target.Unique).Equal(s.new.Lookup(b.Rule.Target.Unique))
	if s.old != nil && !regrouped && untouched(b, s.old, s.new) {
		return false
	}
	group, ok, err := b.Rule.Form.(rules.Adder).GroupOf(s.nm, s.new)
	if err != nil || !ok {
		return pl.strip(s, b)
	}
	context := StampContext(p.Incarnation, s.record.Key, group)
	if !regrouped && !foreign(b, context, s.old, s.new) {
		return false
	}
	ref := GroupRef{b, group}
	ru := pl.Rollups.Of(ref)
	if ru == nil {
		ru = &Rollup{First: s.index}
		pl.Rollups.Put(ref, ru)
	}
	ru.Asked = true
	if s.new.Lookup(b.Rule.Writes[0]).Kind() != change.KindAbsent {
		ru.Present = true
	}
	note(&ru.Wrote, s.record.Key)
	if Stamped(b, context, s.old) {
		note(&ru.Contested, s.record.Key)
	}
	return true
}

// strip asks for the display attribute to be taken off an item without a (good) unique value.
func (pl *Changes) strip(s sides, b *Binding) bool {
	id := ItemRule{b, s.record.Key}
	if s.new.Lookup(b.Rule.Writes[0]).Kind() == change.KindAbsent {
		return false
	}
	ba := pl.Bares.Of(id)
	if ba == nil {
		ba = &Bare{First: s.index}
		pl.Bares.Put(id, ba)
	}
	ba.Last = s.new
	ba.Contested = ba.Contested || s.old != nil && s.old.Lookup(b.Rule.Writes[0]).Kind() == change.KindAbsent
	return true
}

// classifyMirror asks for the healing of a mirror item that another program wrote or
// deleted. It goes by the key alone: an item of another entity, or of none, may
// stand where the mirror item belongs, and may go away.
func (p *Planner) classifyMirror(pl *Changes, rec *change.Record, index int, b *Binding) bool {
	context := StampContext(p.Incarnation, rec.Key, "")
	freed := occupies(b, rec.Key, rec.Old) && !occupies(b, rec.Key, rec.New)
	if rec.Old != nil && rec.New != nil && !freed {
		// A stamp on an item that had none may be ours or put back with a former
		// state of the item.
		ours := Stamped(b, context, rec.Old) && !foreign(b, context, rec.Old, rec.New)
		if ours || untouched(b, rec.Old, rec.New) {
			return false
		}
	}
	id := ItemRule{b, rec.Key}
	h := pl.Heals.Of(id)
	if h == nil {
		h = &Heal{First: index}
		pl.Heals.Put(id, h)
	}
	expired := rec.Expired && Stamped(b, context, rec.Old) // it was the mirror item, and none that stood in its way
	h.Last, h.Expired, h.Deleted = rec.New, rec.New == nil && expired, rec.New == nil && !expired
	h.Contested = h.Contested || Stamped(b, context, rec.Old) && !expired
	h.Freed = h.Freed || freed
	return true
}

// classifyParent asks for a fan-out where a copied attribute changed.
func (p *Planner) classifyParent(pl *Changes, s sides, b *Binding) bool {
	if s.old != nil && s.new != nil && !changed(b.Rule.Reads, s.old, s.new) {
		return false
	}
	before, after := b.Rule.Form.(rules.Giver).Given(s.old), b.Rule.Form.(rules.Giver).Given(s.new)
	if slices.EqualFunc(before, after, change.Value.Equal) {
		return false
	}
	id := ItemRule{b, s.record.Key}
	f := pl.FanOuts.Of(id)
	if f == nil {
		f = &FanOut{First: s.index}
		pl.FanOuts.Put(id, f)
	}
	f.Position, f.Values, f.Deleted = s.record.Position, after, s.new == nil
	return true
}

func changed(names []string, old, new change.Image) bool {
	for _, name := range names {
		if !old.Lookup(name).Equal(new.Lookup(name)) {
			return true
		}
	}
	return false
}

// classifyChild asks for a fill where the child came, its reference changed,
// or another program wrote its copies.
func (p *Planner) classifyChild(pl *Changes, s sides, b *Binding) bool {
	if s.old != nil && s.new != nil && !changed(b.Rule.JoinReads, s.old, s.new) && untouched(b, s.old, s.new) {
		return false
	}
	before, had, oldErr := ReferenceIn(b.Rule, s.om, s.old)
	after, has, newErr := ReferenceIn(b.Rule, s.nm, s.new)
	same := s.old != nil && s.new != nil && oldErr == nil && newErr == nil && had == has && before == after
	context := StampContext(p.Incarnation, s.record.Key, after.String())
	if same && (untouched(b, s.old, s.new) || has && !foreign(b, context, s.old, s.new)) {
		return false
	}
	if same && !has && !changed(b.Rule.Writes, s.old, s.new) {
		return false // our own removal of the stamp
	}
	id := ItemRule{b, s.record.Key}
	f := pl.Fills.Of(id)
	if f == nil {
		f = &Fill{First: s.index}
		pl.Fills.Put(id, f)
	}
	f.Position, f.Gone = s.record.Position, s.new == nil
	f.WasBad = f.WasBad || oldErr != nil || f.Bad != nil
	f.Parent, f.Refers, f.Bad = after, has, newErr
	f.Contested = f.Contested || same && (has && Stamped(b, context, s.old) || !has && !holds(b, s.old))
	for _, ref := range []struct {
		key change.Key
		ok  bool
	}{{before, had}, {after, has}} {
		if ref.ok && !slices.Contains(f.Former, ref.key) {
			f.Former = append(f.Former, ref.key)
		}
	}
	return true
}

// ReferenceIn is the parent that an image of a child refers to.
func ReferenceIn(r *rules.Rule, m *rules.Match, img change.Image) (change.Key, bool, *rules.ItemError) {
	if img == nil {
		return change.Key{}, false, nil
	}
	key, ok, err := r.ParentKey(m, img)
	if err != nil {
		return change.Key{}, false, itemError(err)
	}
	return key, ok, nil
}
