package children

import (
	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/projections/internal/target"
	"github.com/dynamill/dynamill/internal/rules"
)

// Link is how an item refers to its parent.
type Link struct {
	IsChild bool // the item is there, and of the children's entity
	Refers  bool
	Parent  change.Key
	Bad     *rules.ItemError // why the item cannot name its parent
}

// Link implements Family, for the families whose children a rule's join alone links.
func (Following[K]) Link(b *plan.Binding, m *rules.Match, img change.Image) Link {
	if img == nil {
		return Link{}
	}
	key, ok, err := b.Rule.JoinedKey(m, img)
	if err != nil {
		return Link{IsChild: true, Bad: effects.AsItemError(err)}
	}
	return Link{IsChild: true, Refers: ok, Parent: key}
}

// LinkOf is how an item refers to its parent. One that is not there, or is no child, has no link.
func LinkOf(p *plan.Planner, b *plan.Binding, key change.Key, item change.Image) Link {
	m, ok := as(b.Rule.Target, p, key, item)
	if !ok {
		return Link{}
	}
	return familyOf(b).Link(b, &m, item)
}

// linkIn is the link in an image, of the entity of a match.
func linkIn(b *plan.Binding, m *rules.Match, img change.Image) Link {
	if img == nil {
		return Link{}
	}
	return familyOf(b).Link(b, m, img)
}

// as is an item as one of an entity; false if it is none, or not there.
func as(e *rules.Entity, p *plan.Planner, key change.Key, item change.Image) (rules.Match, bool) {
	if item == nil {
		return rules.Match{}, false
	}
	m, ok := p.Set.Identify(key, item)
	return m, ok && m.Entity == e
}

// StillChild adds the condition that a child is as it was when it was read: of its entity, with the same link and the same stamp.
func StillChild(rd *table.Reader, t *target.Write, seen change.Image) {
	t.Condition = target.StillEntity(rd, t.Expression, t.Binding.Rule.Target)
	t.Holds(seen, familyOf(t.Binding).Reads(t.Binding)...)
	t.Holds(seen, t.Binding.Stamp)
}
