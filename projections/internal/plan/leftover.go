package plan

import (
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/rules"
)

// Leftover is what a rule wrote on an item that is not of its target's entity
// any more: an application changed by what entities are told apart.
type Leftover struct {
	First int
	Last  change.Image // the item, as it was seen
	Names []string     // the attributes to take off beside the stamp
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
		pl.Leftovers.Put(ItemRule{b, key}, &Leftover{index, img, names})
		found = true
	}
	return found
}

// unclaimed are the attributes that no rule writes on items of an entity.
func (p *Planner) unclaimed(names []string, e *rules.Entity) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return slices.ContainsFunc(p.Set.Rules, func(r *rules.Rule) bool {
			return r.Target == e && slices.Contains(r.Writes, name)
		})
	})
}
