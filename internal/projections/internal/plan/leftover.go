package plan

import (
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/rules"
)

// Leftover is what a rule wrote on an item on which it writes no more: the item is of another entity now, or the rule is not in force.
type Leftover struct {
	First  int
	Last   change.Image            // the item, as it was seen
	Names  []string                // the attributes to take off beside the stamp
	Back   map[string]change.Value // what those of them held before a late write, which they get back
	Shared []*Binding              // other rules that write some of these attributes: the removal requires that their stamps are unchanged
	Whole  bool                    // the engine made the item for the rule, and it goes
	Makers []*Binding              // rules that make items under this key: if one of them has stamped the item, it is not deleted

	before, late change.Image // the item before and after a late write, where a record tells; otherwise nil
}

// leftovers asks for taking off what rules in force wrote on an item of another entity. A stamp tells of it: the item changed its
// entity, or an application has put it with the stamps that it had.
func (p *Planner) leftovers(pl *Changes, key change.Key, index int, img change.Image, now *rules.Entity) bool {
	found := false
	for _, b := range p.InForce {
		id := ItemRule{b, key}
		if left := p.leftoverOnOtherEntity(id, img, now); left != nil {
			left.First = index
			pl.Leftovers.Put(id, left)
			found = true
		}
	}
	return found
}

// leftoverOnOtherEntity is what a rule in force left on an item of another entity, whatever the stamp's context.
func (p *Planner) leftoverOnOtherEntity(id ItemRule, img change.Image, now *rules.Entity) *Leftover {
	if id.Rule.Target == now || id.Rule.MakesItems() || !id.Rule.Target.HasKey(id.Key) {
		return nil // or the item is cloned, stamps and all, from one with another kind of key
	}
	left, ok := stamp.Parse(img.Lookup(id.Stamp))
	if !ok {
		return nil
	}
	found := &Leftover{Last: img, Shared: p.writersOn(id, now)}
	p.chooseAttributes(found, id, now, id.Covered(left.Digest, img)) // otherwise another program has written there
	return found
}

// planFormerLeftovers asks for taking back what retired rules left on an item, as their stamps tell. If the image before has no such stamp,
// this was a late write: what it replaced is put back.
func (p *Planner) planFormerLeftovers(pl *Changes, key change.Key, index int, old, img change.Image, now *rules.Entity) bool {
	found := false
	for _, b := range p.formersAt(key, true) {
		id := ItemRule{b, key}
		if _, ok := stamp.Parse(img.Lookup(b.Stamp)); !ok {
			if left := p.madeWithoutStamp(id, img); left != nil {
				left.First = index
				pl.Leftovers.Put(id, left)
				found = true
			}
			continue
		}
		left := &Leftover{First: index, Last: img}
		if old != nil {
			left.lateWrite(b, old, pl.Leftovers.Of(id))
		}
		p.takeBack(left, id, now)
		pl.Leftovers.Put(id, left)
		found = true
	}
	return found
}

// lateWrite notes how an item was before and after a late write of a retired rule, as
// this record or one before it in the batch tells. Before is nil if none does.
func (l *Leftover) lateWrite(b *Binding, old change.Image, earlier *Leftover) {
	if _, ok := stamp.Parse(old.Lookup(b.Stamp)); !ok {
		l.before, l.late = old, l.Last
	} else if earlier != nil && earlier.before != nil {
		l.carryLateWrite(b, earlier)
	}
}

// carryLateWrite has what came after a late write count as another program's, unless the rule itself wrote again.
// Only the record of the late write tells what was there before: it is not done before this is.
func (l *Leftover) carryLateWrite(b *Binding, earlier *Leftover) {
	l.First = earlier.First
	l.before, l.late = earlier.before, earlier.late
	if !l.Last.Lookup(b.Stamp).Equal(l.late.Lookup(b.Stamp)) {
		l.late = l.Last
	}
}

// takeBack works out what is to be taken back of a retired rule. An item that it made goes as a whole, unless another such rule has it
// now; one that was there before the rule first wrote on it is not the rule's.
func (p *Planner) takeBack(left *Leftover, id ItemRule, now *rules.Entity) {
	img := left.Last
	written, _ := stamp.Parse(img.Lookup(id.Stamp))
	left.Shared = p.writersOn(id, now)
	makes, ours := id.Rule.MakesItems(), written.Context == stamp.Context(p.Incarnation, id.Key, "")
	switch {
	case makes && !ours: // cloned from another
	case left.before != nil:
		p.chooseAttributes(left, id, now, p.overwritten(left, id))
	case makes && !IsMade(id.Key, img): // the application's own
		p.chooseAttributes(left, id, now, Released(id.Binding, img))
	case !makes:
		p.chooseAttributes(left, id, now, id.Covered(written.Digest, img))
	case p.madeByOther(id.Key, img):
		p.chooseAttributes(left, id, now, id.Rule.Writes)
		if name := id.Rule.Target.ExpireAttribute; name != "" && !p.expires(id.Key, name) {
			left.Names = append(left.Names, name)
		}
	default:
		left.Whole, left.Makers = true, p.makersAt(id.Key)
	}
}

// expires reports whether rules in force write a time to live under a name on the derived items with a key.
func (bs *Bindings) expires(key change.Key, name string) bool {
	return slices.ContainsFunc(bs.Set.Entities, func(e *rules.Entity) bool { return e.ExpireAttribute == name && e.HasKey(key) })
}

// overwritten are the attributes that hold what a late write left and did not stand there before: what a retired rule wrote does not
// count, nor what a rule in force did that has written since, or whose stamp is gone.
func (p *Planner) overwritten(left *Leftover, id ItemRule) []string {
	written, _ := stamp.Parse(left.late.Lookup(id.Stamp))
	var names []string
	for _, name := range id.Covered(written.Digest, left.late) {
		wrote, was := left.late.Lookup(name), left.before.Lookup(name)
		if !wrote.Equal(left.Last.Lookup(name)) {
			continue
		}
		if left.moved(name) || !wrote.Equal(was) || p.heldBy(p.formersAt(id.Key, true), id, name, left.before) {
			names = append(names, name)
		}
	}
	return names
}

// moved reports whether another rule has written an attribute since the late write, or its stamp is gone.
func (l *Leftover) moved(name string) bool {
	return l.late != nil && slices.ContainsFunc(l.Shared, func(b *Binding) bool {
		return slices.Contains(b.Rule.Writes, name) && !l.late.Lookup(b.Stamp).Equal(l.Last.Lookup(b.Stamp))
	})
}

// chooseAttributes sets the attributes to take off an item: those of the rule that no other rule has written. A rule that should have does
// so when the record of the removal comes.
func (p *Planner) chooseAttributes(left *Leftover, id ItemRule, now *rules.Entity, wrote []string) {
	for _, name := range wrote {
		tells := now != nil && slices.ContainsFunc(now.Equals, func(eq rules.Equals) bool { return eq.Attribute == name })
		if tells && left.before == nil || p.heldBy(left.Shared, id, name, left.Last) || p.askedFor(left, id, name) {
			continue
		}
		left.Names = append(left.Names, name)
		if left.before == nil {
			continue
		}
		was := left.before.Lookup(name)
		if was.Kind() != change.KindAbsent && !was.Equal(left.late.Lookup(name)) && !left.moved(name) &&
			!p.heldBy(p.formersAt(id.Key, true), id, name, left.before) {
			if left.Back == nil {
				left.Back = map[string]change.Value{}
			}
			left.Back[name] = was
		}
	}
}

// askedFor reports whether a rule in force asks for what an attribute holds, whichever rule wrote it: the item was put back as it was under
// former rules.
func (p *Planner) askedFor(left *Leftover, id ItemRule, name string) bool {
	m := p.MatchOf(id.Key, left.Last)
	return slices.ContainsFunc(left.Shared, func(b *Binding) bool {
		asker, ok := b.Family.(Asker)
		return ok && !b.Former && slices.Contains(b.Rule.Writes, name) && b.Rule.Target == m.Entity && asker.Asks(b, &m, left.Last, name)
	})
}

// heldBy reports whether what an attribute holds is what another rule wrote.
func (p *Planner) heldBy(bs []*Binding, id ItemRule, name string, img change.Image) bool {
	return slices.ContainsFunc(bs, func(b *Binding) bool {
		if b == id.Binding || !slices.Contains(b.Rule.Writes, name) {
			return false
		}
		written, ok := stamp.Parse(img.Lookup(b.Stamp))
		ok = ok && (!b.Rule.MakesItems() || written.Context == stamp.Context(p.Incarnation, id.Key, ""))
		return ok && slices.Contains(b.Covered(written.Digest, img), name)
	})
}

// writersAt are the rules in force, or not retired yet, that write on items with a key; if they make none, on an entity's.
func (bs *Bindings) writersAt(key change.Key, now *rules.Entity) []*Binding {
	all := bs.formersAt(key, false)
	for _, b := range bs.InForce {
		if b.Rule.MakesItems() && b.Rule.Target.HasKey(key) || !b.Rule.MakesItems() && b.Rule.Target == now {
			all = append(all, b)
		}
	}
	return all
}

// writersOn are the writersAt that write some of the same attributes.
func (bs *Bindings) writersOn(id ItemRule, now *rules.Entity) []*Binding {
	return slices.DeleteFunc(bs.writersAt(id.Key, now), func(b *Binding) bool {
		return b == id.Binding || !slices.ContainsFunc(b.Rule.Writes, func(name string) bool { return slices.Contains(id.Rule.Writes, name) })
	})
}

// makersAt are the writersAt that make items.
func (bs *Bindings) makersAt(key change.Key) []*Binding {
	return slices.DeleteFunc(bs.writersAt(key, nil), func(b *Binding) bool { return !b.Rule.MakesItems() })
}

// formersAt are the former rules, retired or not yet, that can have written on items with a key.
func (bs *Bindings) formersAt(key change.Key, retired bool) []*Binding {
	return slices.DeleteFunc(slices.Clone(bs.formers), func(b *Binding) bool {
		return b.Retired.Load() != retired || !b.Rule.Target.HasKey(key)
	})
}

// Reassess is what is still left over on an item that was not as it was seen before; nil if nothing is.
func (p *Planner) Reassess(id ItemRule, seen *Leftover, img change.Image) *Leftover {
	now := p.MatchOf(id.Key, img).Entity
	if !id.Former {
		return p.leftoverOnOtherEntity(id, img, now)
	}
	if _, ok := stamp.Parse(img.Lookup(id.Stamp)); !ok {
		return p.madeWithoutStamp(id, img)
	}
	left := &Leftover{Last: img}
	// What was written anew, perhaps on an item that came anew, is no more over what was there before.
	same := seen.late != nil && seen.late.Lookup(id.Stamp).Equal(img.Lookup(id.Stamp))
	if seen.before != nil && (same || id.Rule.MakesItems()) {
		left.carryLateWrite(id.Binding, seen)
	}
	p.takeBack(left, id, now)
	return left
}

// madeWithoutStamp is a made item that a retired rule left, and from which another program took the rule's stamp just before the rule
// retired. nil for any other item: if another rule may have made this one, that rule looks at it.
func (p *Planner) madeWithoutStamp(id ItemRule, img change.Image) *Leftover {
	if !id.Rule.MakesItems() || id.Rule.Derives() || !p.HasLostStamp(id.Key, img) {
		return nil
	}
	for _, b := range p.makersAt(id.Key) {
		if _, known := b.Rule.SourceKey(id.Key); known || b.Claimed() || b.Rule.Derives() {
			return nil
		}
	}
	return &Leftover{Last: img, Whole: true}
}

// HasLostStamp reports whether an item that the engine made carries no stamp of a rule that makes items: another program took it off. Until
// a former rule retires that may have made it, the item stays that rule's.
func (bs *Bindings) HasLostStamp(key change.Key, img change.Image) bool {
	makes := func(b *Binding) bool { return b.Rule.MakesItems() }
	return IsMade(key, img) && !bs.mayHaveMaker(img) && !slices.ContainsFunc(bs.formersAt(key, false), makes)
}

// mayHaveMaker reports whether an item has the stamp of a rule that makes items, or of one that is not known here.
func (bs *Bindings) mayHaveMaker(img change.Image) bool {
	for name, v := range img.All() {
		id, ours := strings.CutPrefix(name, stamp.Prefix)
		if b := bs.AnyByID(id); ours && (b == nil || b.Rule.MakesItems() && isStamp(v)) {
			return true
		}
	}
	return false
}

func isStamp(v change.Value) bool {
	_, ok := stamp.Parse(v)
	return ok
}

// PlanFormerLeftovers asks for taking back what retired rules left on an item that was read. A made item without the stamp of its rule may
// be that of a rule in force: this rule looks at it.
func (p *Planner) PlanFormerLeftovers(pl *Changes, key change.Key, img change.Image) {
	m := p.MatchOf(key, img)
	p.planFormerLeftovers(pl, key, 0, nil, img, m.Entity)
	if !p.HasLostStamp(key, img) {
		return
	}
	for _, b := range p.makersAt(key) {
		if !b.Rule.Derives() {
			b.Family.Rederive(p, pl, b, &Item{Key: key, Image: img, Match: m, Scope: Itself})
		}
	}
}

// WroteAt reports whether retired rules can have written on an item with a key.
func (bs *Bindings) WroteAt(key change.Key) bool {
	return len(bs.formersAt(key, true)) > 0
}

// madeByOther reports whether a rule in force, or not retired yet, that makes items has written an item.
func (p *Planner) madeByOther(key change.Key, img change.Image) bool {
	return slices.ContainsFunc(p.makersAt(key), func(b *Binding) bool {
		return Stamped(b, stamp.Context(p.Incarnation, key, ""), img)
	})
}

// LeftoversOn are what retired rules, and rules on items of another entity, left on an item.
func (p *Planner) LeftoversOn(key change.Key, img change.Image) *OrderedMap[ItemRule, Leftover] {
	pl := &Changes{}
	if img != nil {
		p.leftovers(pl, key, 0, img, p.MatchOf(key, img).Entity)
		p.PlanFormerLeftovers(pl, key, img)
	}
	return &pl.Leftovers
}
