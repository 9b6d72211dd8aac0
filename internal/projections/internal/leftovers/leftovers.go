// Package leftovers finds what rules wrote on items on which they write no more: an item is of another entity now, or a rule is not in
// force any more. The stamps on the item show it. The package plans what the engine takes off, and does no I/O (promise 8).
package leftovers

import (
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/rules"
)

// Leftover is what a rule wrote on an item on which it writes no more: the item is of another entity now, or the rule is not in force.
type Leftover struct {
	First  int
	Last   change.Image            // the item, as it was seen
	Names  []string                // the attributes to take off beside the stamp
	Back   map[string]change.Value // what those of them held before a late write, which they get back
	Shared []*plan.Binding         // other rules that write some of these attributes: the removal requires that their stamps are unchanged
	Whole  bool                    // the engine made the item for the rule, and it goes
	Makers []*plan.Binding         // rules that make items under this key: if one of them has stamped the item, it is not deleted

	before, late change.Image // the item before and after a late write, where a record tells; otherwise nil
}

// Found are those that a plan asks to take back.
func Found(pl *plan.Changes) *plan.OrderedMap[plan.ItemRule, Leftover] {
	return plan.PartOf[plan.OrderedMap[plan.ItemRule, Leftover]](pl)
}

// PlanRecord asks for taking back what is left over on the item of a record. It reports whether that is anything.
func PlanRecord(p *plan.Planner, pl *plan.Changes, s *plan.Sides) bool {
	rec, now := s.Record, s.NewEntity()
	if rec.New == nil {
		return false
	}
	found := ofOtherEntity(p, pl, rec.Key, s.Index, rec.New, now)
	return ofRetired(p, pl, rec.Key, s.Index, rec.Old, rec.New, now) || found
}

// PlanItem asks for taking back what is left over on an item that is rederived. Seeding leaves that to the pass that cleans.
func PlanItem(p *plan.Planner, pl *plan.Changes, key change.Key, img change.Image, sc plan.Scope) {
	if img == nil || sc < plan.Itself {
		return
	}
	now := p.MatchOf(key, img).Entity
	ofOtherEntity(p, pl, key, 0, img, now)
	ofRetired(p, pl, key, 0, nil, img, now)
}

// ofOtherEntity asks for taking off what rules in force wrote on an item of another entity. A stamp tells of it: the item changed its
// entity, or an application has put it with the stamps that it had.
func ofOtherEntity(p *plan.Planner, pl *plan.Changes, key change.Key, index int, img change.Image, now *rules.Entity) bool {
	found := false
	for _, b := range p.InForce {
		id := plan.ItemRule{Binding: b, Key: key}
		if left := leftoverOnOtherEntity(p, id, img, now); left != nil {
			left.First = index
			Found(pl).Put(id, left)
			found = true
		}
	}
	return found
}

// leftoverOnOtherEntity is what a rule in force left on an item of another entity, whatever the stamp's context.
func leftoverOnOtherEntity(p *plan.Planner, id plan.ItemRule, img change.Image, now *rules.Entity) *Leftover {
	if id.Rule.Target == now || id.Rule.MakesItems() || !id.Rule.Target.HasKey(id.Key) {
		return nil // or the item is cloned, stamps and all, from one with another kind of key
	}
	left, ok := stamp.Parse(img.Lookup(id.Stamp))
	if !ok {
		return nil
	}
	found := &Leftover{Last: img, Shared: writersOn(p, id, now)}
	chooseAttributes(p, found, id, now, id.Covered(left.Digest, img)) // otherwise another program has written there
	return found
}

// ofRetired asks for taking back what retired rules left on an item, as their stamps tell. If the image before has no such stamp,
// this was a late write: what it replaced is put back.
func ofRetired(p *plan.Planner, pl *plan.Changes, key change.Key, index int, old, img change.Image, now *rules.Entity) bool {
	found := false
	for _, b := range formersAt(p, key, true) {
		id := plan.ItemRule{Binding: b, Key: key}
		if _, ok := stamp.Parse(img.Lookup(b.Stamp)); !ok {
			if left := madeWithoutStamp(p, id, img); left != nil {
				left.First = index
				Found(pl).Put(id, left)
				found = true
			}
			continue
		}
		left := &Leftover{First: index, Last: img}
		if old != nil {
			left.lateWrite(b, old, Found(pl).Of(id))
		}
		takeBack(p, left, id, now)
		Found(pl).Put(id, left)
		found = true
	}
	return found
}

// lateWrite notes how an item was before and after a late write of a retired rule, as
// this record or one before it in the batch tells. Before is nil if none does.
func (l *Leftover) lateWrite(b *plan.Binding, old change.Image, earlier *Leftover) {
	if _, ok := stamp.Parse(old.Lookup(b.Stamp)); !ok {
		l.before, l.late = old, l.Last
	} else if earlier != nil && earlier.before != nil {
		l.carryLateWrite(b, earlier)
	}
}

// carryLateWrite has what came after a late write count as another program's, unless the rule itself wrote again.
// Only the record of the late write tells what was there before: it is not done before this is.
func (l *Leftover) carryLateWrite(b *plan.Binding, earlier *Leftover) {
	l.First = earlier.First
	l.before, l.late = earlier.before, earlier.late
	if !l.Last.Lookup(b.Stamp).Equal(l.late.Lookup(b.Stamp)) {
		l.late = l.Last
	}
}

// takeBack works out what is to be taken back of a retired rule. An item that it made goes as a whole, unless another such rule has it
// now; one that was there before the rule first wrote on it is not the rule's.
func takeBack(p *plan.Planner, left *Leftover, id plan.ItemRule, now *rules.Entity) {
	img := left.Last
	written, _ := stamp.Parse(img.Lookup(id.Stamp))
	left.Shared = writersOn(p, id, now)
	makes, ours := id.Rule.MakesItems(), written.Context == stamp.Context(p.Incarnation, id.Key, "")
	switch {
	case makes && !ours: // cloned from another
	case left.before != nil:
		chooseAttributes(p, left, id, now, overwritten(p, left, id))
	case makes && !plan.IsMade(id.Key, img): // the application's own
		chooseAttributes(p, left, id, now, plan.Released(id.Binding, img))
	case !makes:
		chooseAttributes(p, left, id, now, id.Covered(written.Digest, img))
	case madeByOther(p, id.Key, img):
		chooseAttributes(p, left, id, now, id.Rule.Writes)
		if name := id.Rule.Target.ExpireAttribute; name != "" && !expires(p, id.Key, name) {
			left.Names = append(left.Names, name)
		}
	default:
		left.Whole, left.Makers = true, makersAt(p, id.Key)
	}
}

// overwritten are the attributes that hold what a late write left and did not stand there before: what a retired rule wrote does not
// count, nor what a rule in force did that has written since, or whose stamp is gone.
func overwritten(p *plan.Planner, left *Leftover, id plan.ItemRule) []string {
	written, _ := stamp.Parse(left.late.Lookup(id.Stamp))
	var names []string
	for _, name := range id.Covered(written.Digest, left.late) {
		wrote, was := left.late.Lookup(name), left.before.Lookup(name)
		if !wrote.Equal(left.Last.Lookup(name)) {
			continue
		}
		if left.moved(name) || !wrote.Equal(was) || heldBy(p, formersAt(p, id.Key, true), id, name, left.before) {
			names = append(names, name)
		}
	}
	return names
}

// moved reports whether another rule has written an attribute since the late write, or its stamp is gone.
func (l *Leftover) moved(name string) bool {
	return l.late != nil && slices.ContainsFunc(l.Shared, func(b *plan.Binding) bool {
		return slices.Contains(b.Rule.Writes, name) && !l.late.Lookup(b.Stamp).Equal(l.Last.Lookup(b.Stamp))
	})
}

// chooseAttributes sets the attributes to take off an item: those of the rule that no other rule has written. A rule that should have does
// so when the record of the removal comes.
func chooseAttributes(p *plan.Planner, left *Leftover, id plan.ItemRule, now *rules.Entity, wrote []string) {
	for _, name := range wrote {
		tells := now != nil && slices.ContainsFunc(now.Equals, func(eq rules.Equals) bool { return eq.Attribute == name })
		if tells && left.before == nil || heldBy(p, left.Shared, id, name, left.Last) || askedFor(p, left, id, name) {
			continue
		}
		left.Names = append(left.Names, name)
		if left.before == nil {
			continue
		}
		was := left.before.Lookup(name)
		if was.Kind() != change.KindAbsent && !was.Equal(left.late.Lookup(name)) && !left.moved(name) &&
			!heldBy(p, formersAt(p, id.Key, true), id, name, left.before) {
			if left.Back == nil {
				left.Back = map[string]change.Value{}
			}
			left.Back[name] = was
		}
	}
}

// askedFor reports whether a rule in force asks for what an attribute holds, whichever rule wrote it: the item was put back as it was under
// former rules.
func askedFor(p *plan.Planner, left *Leftover, id plan.ItemRule, name string) bool {
	m := p.MatchOf(id.Key, left.Last)
	return slices.ContainsFunc(left.Shared, func(b *plan.Binding) bool {
		asker, ok := b.Family.(plan.Asker)
		return ok && !b.Former && slices.Contains(b.Rule.Writes, name) && b.Rule.Target == m.Entity && asker.Asks(b, &m, left.Last, name)
	})
}

// Reassess is what is still left over on an item that was not as it was seen before; nil if nothing is.
func Reassess(p *plan.Planner, id plan.ItemRule, seen *Leftover, img change.Image) *Leftover {
	now := p.MatchOf(id.Key, img).Entity
	if !id.Former {
		return leftoverOnOtherEntity(p, id, img, now)
	}
	if _, ok := stamp.Parse(img.Lookup(id.Stamp)); !ok {
		return madeWithoutStamp(p, id, img)
	}
	left := &Leftover{Last: img}
	// What was written anew, perhaps on an item that came anew, is no more over what was there before.
	same := seen.late != nil && seen.late.Lookup(id.Stamp).Equal(img.Lookup(id.Stamp))
	if seen.before != nil && (same || id.Rule.MakesItems()) {
		left.carryLateWrite(id.Binding, seen)
	}
	takeBack(p, left, id, now)
	return left
}

// madeWithoutStamp is a made item that a retired rule left, and from which another program took the rule's stamp just before the rule
// retired. nil for any other item: if another rule may have made this one, that rule looks at it.
func madeWithoutStamp(p *plan.Planner, id plan.ItemRule, img change.Image) *Leftover {
	if !id.Rule.MakesItems() || id.Rule.Derives() || !HasLostStamp(p, id.Key, img) {
		return nil
	}
	for _, b := range makersAt(p, id.Key) {
		if _, known := b.Rule.SourceKey(id.Key); known || b.Claimed() || b.Rule.Derives() {
			return nil
		}
	}
	return &Leftover{Last: img, Whole: true}
}

// PlanRetired asks for taking back what retired rules left on an item that was read. A made item without the stamp of its rule may
// be that of a rule in force: this rule looks at it.
func PlanRetired(p *plan.Planner, pl *plan.Changes, key change.Key, img change.Image) {
	m := p.MatchOf(key, img)
	ofRetired(p, pl, key, 0, nil, img, m.Entity)
	if !HasLostStamp(p, key, img) {
		return
	}
	for _, b := range makersAt(p, key) {
		if !b.Rule.Derives() {
			b.Family.Rederive(p, pl, b, &plan.Item{Key: key, Image: img, Match: m, Scope: plan.Itself})
		}
	}
}

// On are what retired rules, and rules on items of another entity, left on an item.
func On(p *plan.Planner, key change.Key, img change.Image) *plan.OrderedMap[plan.ItemRule, Leftover] {
	pl := &plan.Changes{}
	if img != nil {
		ofOtherEntity(p, pl, key, 0, img, p.MatchOf(key, img).Entity)
		PlanRetired(p, pl, key, img)
	}
	return Found(pl)
}
