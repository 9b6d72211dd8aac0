package projections

import (
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/rules"
)

// planner turns records into intended changes, without any I/O.
//
// Each record is classified by itself; runs of one item's records are then
// taken together. A run is dropped only if every record of it can be dropped,
// the ledger moves to the position of the last one that changed effects, and roll-up targets
// and old parents are taken from all images: judging a run by its first and
// last image alone loses work (docs/architecture.md, "Compaction").
type planner struct {
	*bindings
	incarnation string
	epoch       int
}

// itemRule is one rule on one item: a target to heal, a parent to fan out, a child to fill.
type itemRule struct {
	b   *binding
	key change.Key
}

// plan is what a batch of records asks for. Every part says which record was
// the first to ask for it, so that a failure of that part is a failure of that record.
type plan struct {
	moves     asked[change.Key, move]
	rollups   asked[groupRef, rollup]
	heals     asked[itemRule, heal]
	parents   asked[itemRule, fanOut]
	children  asked[itemRule, fill]
	bares     asked[itemRule, bare]
	relevant  int
	unmatched int
}

// bare is an item that displays an aggregate although it has no unique value to find it by.
type bare struct {
	first int
	last  change.Image
}

// rollup is a display attribute that is due to be written anew.
type rollup struct {
	first     int
	present   bool                // the target may hold a value, so that even a sum over nothing must be written
	contested map[change.Key]bool // targets on which it replaces what the engine had written: counted against the bound
	marks     []*move             // moves whose due marks can be cleared once this is shown
}

func (ru *rollup) contest(target change.Key) {
	if ru.contested == nil {
		ru.contested = map[change.Key]bool{}
	}
	ru.contested[target] = true
}

// heal is a mirror item that somebody else changed, or that came or went.
type heal struct {
	first     int
	last      change.Image // nil: deleted
	contested bool         // it replaces what the engine had written: counted against the bound
}

// fanOut is a parent whose copied attributes changed.
type fanOut struct {
	first    int
	position change.Position
	values   []change.Value
	deleted  bool
}

// fill is a child whose reference or copies changed.
type fill struct {
	first     int
	position  change.Position
	parent    change.Key
	refers    bool // parent is set
	bad       *rules.ItemError
	wasBad    bool // an image before could not be read: what was parked is cleared
	gone      bool
	former    []change.Key // parents that images of the run refer to
	contested bool
}

func (p *planner) plan(records []change.Record) *plan {
	pl := &plan{}
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

func (p *planner) classify(pl *plan, rec *change.Record, index int) {
	var om, nm rules.Match
	var oldOK, newOK bool
	if rec.Old != nil {
		om, oldOK = p.set.Identify(rec.Key, rec.Old)
	}
	if rec.New != nil {
		nm, newOK = p.set.Identify(rec.Key, rec.New)
	}
	if !oldOK && !newOK {
		pl.unmatched++
		return
	}
	relevant := p.classifyLedger(pl, rec, index, &om, &nm)
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
		pl.relevant++
	}
}

// classifyLedger plans the move of the item's ledger entry.
func (p *planner) classifyLedger(pl *plan, rec *change.Record, index int, om, nm *rules.Match) bool {
	if !feedsLedger(om.Entity) && !feedsLedger(nm.Entity) {
		return false
	}
	if om.Entity == nm.Entity && rec.Old != nil && rec.New != nil && !readsChanged(om.Entity, rec.Old, rec.New) {
		return false
	}
	old, new := p.effectsOf(rec.Key, rec.Old), p.effectsOf(rec.Key, rec.New)
	if old.equal(new) {
		return false
	}
	mv := pl.moves.of(rec.Key)
	if mv == nil {
		mv = &move{key: rec.Key, first: index, old: old}
		pl.moves.put(rec.Key, mv)
	}
	mv.new, mv.to, mv.position = new, versionAt(p.epoch, rec.Position), rec.Position
	p.groups(old, mv.touch)
	p.groups(new, mv.touch)
	return true
}

func feedsLedger(e *rules.Entity) bool { return e != nil && (len(e.Sources) > 0 || e.Located) }

// readsChanged reports whether a record changed an attribute on which effects of this entity depend.
func readsChanged(e *rules.Entity, old, new change.Image) bool {
	for _, r := range e.Sources {
		if changed(r.Reads, old, new) {
			return true
		}
	}
	return e.Located && !e.UniqueInKey() && !old.Lookup(e.Unique).Equal(new.Lookup(e.Unique))
}

func (p *planner) classifyEntity(pl *plan, s sides, e *rules.Entity) bool {
	relevant := false
	for _, r := range e.Displays {
		relevant = p.classifyDisplay(pl, s, p.byRule[r]) || relevant
	}
	for _, r := range e.Mirrors {
		relevant = p.classifyMirror(pl, s, p.byRule[r]) || relevant
	}
	for _, r := range e.Parents {
		relevant = p.classifyParent(pl, s, p.byRule[r]) || relevant
	}
	for _, r := range e.Children {
		relevant = p.classifyChild(pl, s, p.byRule[r]) || relevant
	}
	return relevant
}

// classifyDisplay asks for a roll-up where somebody else wrote the display attribute.
func (p *planner) classifyDisplay(pl *plan, s sides, b *binding) bool {
	if s.new == nil {
		return false
	}
	regrouped := b.rule.ByUnique && !b.rule.Target.UniqueInKey() && s.old != nil && !s.old.Lookup(b.rule.Target.Unique).Equal(s.new.Lookup(b.rule.Target.Unique))
	if s.old != nil && !regrouped && untouched(b, s.old, s.new) {
		return false
	}
	group, ok, err := b.rule.GroupOf(s.nm, s.new)
	if err != nil || !ok {
		return pl.strip(s, b)
	}
	context := stampContext(p.incarnation, s.record.Key, group)
	if !regrouped && !foreign(b, context, s.old, s.new) {
		return false
	}
	ref := groupRef{b, group}
	ru := pl.rollups.of(ref)
	if ru == nil {
		ru = &rollup{first: s.index}
		pl.rollups.put(ref, ru)
	}
	if s.new.Lookup(b.rule.Writes[0]).Kind() != change.KindAbsent {
		ru.present = true
	}
	if stamped(b, context, s.old) {
		ru.contest(s.record.Key)
	}
	return true
}

// strip asks for the display attribute to be taken off an item without a (good) unique value.
func (pl *plan) strip(s sides, b *binding) bool {
	id := itemRule{b, s.record.Key}
	if s.new.Lookup(b.rule.Writes[0]).Kind() == change.KindAbsent {
		return false
	}
	ba := pl.bares.of(id)
	if ba == nil {
		ba = &bare{first: s.index}
		pl.bares.put(id, ba)
	}
	ba.last = s.new
	return true
}

// classifyMirror asks for the healing of a mirror item that somebody else wrote or deleted.
func (p *planner) classifyMirror(pl *plan, s sides, b *binding) bool {
	context := stampContext(p.incarnation, s.record.Key, "")
	if s.old != nil && s.new != nil {
		// A stamp on an item that had none may be ours or put back with a former
		// state of the item: a mirror item without a stamp outlives its source.
		ours := stamped(b, context, s.old) && !foreign(b, context, s.old, s.new)
		if ours || untouched(b, s.old, s.new) {
			return false
		}
	}
	id := itemRule{b, s.record.Key}
	h := pl.heals.of(id)
	if h == nil {
		h = &heal{first: s.index}
		pl.heals.put(id, h)
	}
	h.last = s.new
	h.contested = h.contested || stamped(b, context, s.old)
	return true
}

// classifyParent asks for a fan-out where a copied attribute changed.
func (p *planner) classifyParent(pl *plan, s sides, b *binding) bool {
	if s.old != nil && s.new != nil && !changed(b.rule.Reads, s.old, s.new) {
		return false
	}
	before, after := b.rule.Copied(s.old), b.rule.Copied(s.new)
	if slices.EqualFunc(before, after, change.Value.Equal) {
		return false
	}
	id := itemRule{b, s.record.Key}
	f := pl.parents.of(id)
	if f == nil {
		f = &fanOut{first: s.index}
		pl.parents.put(id, f)
	}
	f.position, f.values, f.deleted = s.record.Position, after, s.new == nil
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
// or somebody else wrote its copies.
func (p *planner) classifyChild(pl *plan, s sides, b *binding) bool {
	if s.old != nil && s.new != nil && !changed(b.rule.JoinReads, s.old, s.new) && untouched(b, s.old, s.new) {
		return false
	}
	before, had, oldErr := referenceIn(b.rule, s.om, s.old)
	after, has, newErr := referenceIn(b.rule, s.nm, s.new)
	same := s.old != nil && s.new != nil && oldErr == nil && newErr == nil && had == has && before == after
	context := stampContext(p.incarnation, s.record.Key, after.String())
	if same && (untouched(b, s.old, s.new) || has && !foreign(b, context, s.old, s.new)) {
		return false
	}
	if same && !has && !changed(b.rule.Writes, s.old, s.new) {
		return false // our own removal of the stamp
	}
	id := itemRule{b, s.record.Key}
	f := pl.children.of(id)
	if f == nil {
		f = &fill{first: s.index}
		pl.children.put(id, f)
	}
	f.position, f.gone = s.record.Position, s.new == nil
	f.wasBad = f.wasBad || oldErr != nil || f.bad != nil
	f.parent, f.refers, f.bad = after, has, newErr
	f.contested = f.contested || same && has && stamped(b, context, s.old)
	for _, ref := range []struct {
		key change.Key
		ok  bool
	}{{before, had}, {after, has}} {
		if ref.ok && !slices.Contains(f.former, ref.key) {
			f.former = append(f.former, ref.key)
		}
	}
	return true
}

// referenceIn is the parent that an image of a child refers to.
func referenceIn(r *rules.Rule, m *rules.Match, img change.Image) (change.Key, bool, *rules.ItemError) {
	if img == nil {
		return change.Key{}, false, nil
	}
	key, ok, err := r.ParentKey(m, img)
	if err != nil {
		return change.Key{}, false, itemError(err)
	}
	return key, ok, nil
}
