package plan

import (
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/guard"
	"github.com/dynamill/dynamill/rules"
)

// Leftover is what a rule wrote on an item that it does not write on any more:
// the item is of another entity now, because an application changed by what
// entities are told apart, or the rule is not in force any more.
type Leftover struct {
	First  int
	Last   change.Image // the item, as it was seen
	Names  []string     // the attributes to take off beside the stamp
	Delete []*Binding   // the item is the rule's own, and goes unless one of these mirror rules has it
	Whole  bool         // it goes
}

// leftovers asks for taking off what the rules of a former entity, or of any,
// wrote on an item that is of another now. In which context they did so is not
// asked: the image that told it may be long past.
func (p *Planner) leftovers(pl *Changes, key change.Key, index int, img change.Image, wrote []*rules.Rule, now *rules.Entity) bool {
	found := false
	for _, r := range wrote {
		b := p.Of(r)
		left, ok := parseStamp(img.Lookup(b.Stamp))
		if !ok || r.Target == now || r.Kind == rules.Mirror || !r.Target.HasKey(key) {
			continue // or the item is cloned, stamps and all, from one with another kind of key
		}
		var names []string
		if left.Digest == DigestOf(b, img) { // else somebody else has written there
			names = p.unclaimed(r.Writes, now)
		}
		pl.Leftovers.Put(ItemRule{b, key}, &Leftover{First: index, Last: img, Names: names})
		found = true
	}
	return found
}

// formerly asks for taking back what retired rules left on an item, whenever they
// wrote it: an image with the stamp of one tells that it is there. An item that a
// mirror rule made goes as a whole, unless another mirror rule has it now.
func (p *Planner) formerly(pl *Changes, key change.Key, index int, img change.Image, now *rules.Entity) bool {
	found := false
	for _, b := range p.formers {
		if !b.Retired.Load() || !b.Rule.Target.HasKey(key) {
			continue
		}
		stamp, ok := parseStamp(img.Lookup(b.Stamp))
		if !ok {
			continue
		}
		left := &Leftover{First: index, Last: img}
		names := p.unclaimed(b.Rule.Writes, now)
		overwritten := stamp.Digest != DigestOf(b, img) && len(names) == len(b.Rule.Writes) // else by the rule that claims the others
		ours := stamp.Context == StampContext(p.Incarnation, key, "")
		switch {
		case b.Rule.Kind != rules.Mirror && !overwritten, ours && p.mirrored(key, img):
			left.Names = names
		case b.Rule.Kind != rules.Mirror: // somebody else has written there
		case ours:
			left.Whole, left.Delete = true, p.mirrorsAt(key)
		}
		pl.Leftovers.Put(ItemRule{b, key}, left)
		found = true
	}
	return found
}

// Formerly asks for taking back what retired rules left on an item that was read.
func (p *Planner) Formerly(pl *Changes, key change.Key, img change.Image) {
	m, _ := p.Set.Identify(key, img)
	p.formerly(pl, key, 0, img, m.Entity)
}

// WroteAt reports whether retired rules can have written on an item with a key.
func (bs *Bindings) WroteAt(key change.Key) bool {
	return slices.ContainsFunc(bs.formers, func(b *Binding) bool { return b.Retired.Load() && b.Rule.Target.HasKey(key) })
}

// mirrorsAt are the mirror rules in force that can give an item with a key.
func (bs *Bindings) mirrorsAt(key change.Key) []*Binding {
	var all []*Binding
	for _, r := range bs.Set.Rules {
		if r.Kind == rules.Mirror && r.Target.HasKey(key) {
			all = append(all, bs.Of(r))
		}
	}
	return all
}

// mirrored reports whether a mirror rule in force has written an item.
func (p *Planner) mirrored(key change.Key, img change.Image) bool {
	return slices.ContainsFunc(p.mirrorsAt(key), func(b *Binding) bool {
		return Stamped(b, StampContext(p.Incarnation, key, ""), img) && !guard.Off(guard.RetiredStays)
	})
}

// unclaimed are the attributes that no rule writes on items of an entity, and
// that do not tell it from others.
func (bs *Bindings) unclaimed(names []string, e *rules.Entity) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return slices.ContainsFunc(bs.Set.Rules, func(r *rules.Rule) bool {
			return r.Target == e && slices.Contains(r.Writes, name)
		}) || e != nil && slices.ContainsFunc(e.Equals, func(eq rules.Equals) bool { return eq.Attribute == name })
	})
}
