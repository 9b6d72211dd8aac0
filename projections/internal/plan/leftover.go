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
	Stamp change.Value // the rule's, as it was left
	Names []string     // the attributes to take off, the stamp among them
}

// leftovers asks for taking off what rules of an item's former entity wrote. In
// which context they did so is not asked: the image that told it may be long past.
func (p *Planner) leftovers(pl *Changes, s sides, now *rules.Entity) bool {
	found := false
	for _, r := range slices.Concat(s.om.Entity.Displays, s.om.Entity.Children) {
		b := p.Of(r)
		left, ok := parseStamp(s.new.Lookup(b.Stamp))
		if !ok {
			continue
		}
		names := []string{b.Stamp}
		if left.Digest == DigestOf(b, s.new) { // else somebody else has written there
			names = append(names, p.unclaimed(r.Writes, now)...)
		}
		pl.Leftovers.Put(ItemRule{b, s.record.Key}, &Leftover{s.index, s.new.Lookup(b.Stamp), names})
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
