package leftovers

import (
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/rules"
)

// writersAt are the rules in force, or not retired yet, that write on items with a key; if they make none, on an entity's.
func writersAt(p *plan.Planner, key change.Key, now *rules.Entity) []*plan.Binding {
	all := formersAt(p, key, false)
	for _, b := range p.InForce {
		if b.Rule.MakesItems() && b.Rule.Target.HasKey(key) || !b.Rule.MakesItems() && b.Rule.Target == now {
			all = append(all, b)
		}
	}
	return all
}

// writersOn are the writersAt that write some of the same attributes.
func writersOn(p *plan.Planner, id plan.ItemRule, now *rules.Entity) []*plan.Binding {
	return slices.DeleteFunc(writersAt(p, id.Key, now), func(b *plan.Binding) bool {
		return b == id.Binding || !slices.ContainsFunc(b.Rule.Writes, func(name string) bool { return slices.Contains(id.Rule.Writes, name) })
	})
}

// makersAt are the writersAt that make items.
func makersAt(p *plan.Planner, key change.Key) []*plan.Binding {
	return slices.DeleteFunc(writersAt(p, key, nil), func(b *plan.Binding) bool { return !b.Rule.MakesItems() })
}

// formersAt are the former rules, retired or not yet, that can have written on items with a key.
func formersAt(p *plan.Planner, key change.Key, retired bool) []*plan.Binding {
	return slices.DeleteFunc(slices.Clone(p.Formers()), func(b *plan.Binding) bool {
		return b.Retired.Load() != retired || !b.Rule.Target.HasKey(key)
	})
}

// WroteAt reports whether retired rules can have written on an item with a key.
func WroteAt(p *plan.Planner, key change.Key) bool {
	return len(formersAt(p, key, true)) > 0
}

// HasLostStamp reports whether an item that the engine made carries no stamp of a rule that makes items: another program took it off. Until
// a former rule retires that may have made it, the item stays that rule's.
func HasLostStamp(p *plan.Planner, key change.Key, img change.Image) bool {
	makes := func(b *plan.Binding) bool { return b.Rule.MakesItems() }
	return plan.IsMade(key, img) && !mayHaveMaker(p, img) && !slices.ContainsFunc(formersAt(p, key, false), makes)
}

// mayHaveMaker reports whether an item has the stamp of a rule that makes items, or of one that is not known here.
func mayHaveMaker(p *plan.Planner, img change.Image) bool {
	for name, v := range img.All() {
		id, ours := strings.CutPrefix(name, stamp.Prefix)
		if b := p.AnyByID(id); ours && (b == nil || b.Rule.MakesItems() && isStamp(v)) {
			return true
		}
	}
	return false
}

func isStamp(v change.Value) bool {
	_, ok := stamp.Parse(v)
	return ok
}

// madeByOther reports whether a rule in force, or not retired yet, that makes items has written an item.
func madeByOther(p *plan.Planner, key change.Key, img change.Image) bool {
	return slices.ContainsFunc(makersAt(p, key), func(b *plan.Binding) bool {
		return plan.Stamped(b, stamp.Context(p.Incarnation, key, ""), img)
	})
}

// heldBy reports whether what an attribute holds is what another rule wrote.
func heldBy(p *plan.Planner, bs []*plan.Binding, id plan.ItemRule, name string, img change.Image) bool {
	return slices.ContainsFunc(bs, func(b *plan.Binding) bool {
		if b == id.Binding || !slices.Contains(b.Rule.Writes, name) {
			return false
		}
		written, ok := stamp.Parse(img.Lookup(b.Stamp))
		ok = ok && (!b.Rule.MakesItems() || written.Context == stamp.Context(p.Incarnation, id.Key, ""))
		return ok && slices.Contains(b.Covered(written.Digest, img), name)
	})
}

// expires reports whether rules in force write a time to live under a name on the derived items with a key.
func expires(p *plan.Planner, key change.Key, name string) bool {
	return slices.ContainsFunc(p.Set.Entities, func(e *rules.Entity) bool { return e.ExpireAttribute == name && e.HasKey(key) })
}
