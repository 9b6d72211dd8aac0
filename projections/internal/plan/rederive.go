package plan

import (
	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/rules"
)

// Scope says how much of an item rederiving looks at.
type Scope uint8

// The scopes.
const (
	// Sources is what seeding needs: effects, mirrors in force, references and
	// copies of the item. Every source of a mirror item comes by itself.
	Sources Scope = iota
	// Everything also shows what is displayed on the item, and heals it where it is a mirror item.
	Everything
)

// Rederive plans what an item, as it is now, asks for.
func (p *Planner) Rederive(pl *Changes, key change.Key, ent *Entry, img change.Image, sc Scope) *Move {
	mv := p.MoveFrom(key, ent, img, sc)
	mv.Repark = sc == Everything && mv.New.HasParked()
	if sc == Everything {
		p.refills(pl, key)
		p.mirrors(pl, key, img)
	}
	if img == nil {
		return mv
	}
	m, ok := p.Set.Identify(key, img)
	if sc == Everything {
		p.leftovers(pl, key, 0, img, p.Set.Rules, m.Entity)
	}
	if !ok {
		return mv
	}
	for _, r := range m.Entity.Children {
		id := ItemRule{p.Of(r), key}
		f := &Fill{}
		f.Parent, f.Refers, f.Bad = ReferenceIn(r, &m, img)
		pl.Fills.Put(id, f)
	}
	if sc != Everything {
		return mv
	}
	for _, r := range m.Entity.Displays {
		p.Display(pl, r, key, &m, img)
	}
	return mv
}

// refills plans the filling of an item's children, for every copy rule of which it can be the parent, there or gone.
func (p *Planner) refills(pl *Changes, key change.Key) {
	for _, r := range p.Set.Rules {
		if r.Kind == rules.Copy && r.Source.HasKey(key) {
			pl.Refills = append(pl.Refills, ItemRule{p.Of(r), key})
		}
	}
}

// mirrors plans the healing of an item for every mirror rule that can give it,
// whatever it is now: what tells the mirror's entity may have been overwritten.
func (p *Planner) mirrors(pl *Changes, key change.Key, img change.Image) {
	for _, r := range p.Set.Rules {
		if r.Kind == rules.Mirror && r.Target.HasKey(key) {
			pl.Heals.Put(ItemRule{p.Of(r), key}, &Heal{Last: img})
		}
	}
}

// Display plans what one item displays under a rule, as it is now.
func (p *Planner) Display(pl *Changes, r *rules.Rule, key change.Key, m *rules.Match, img change.Image) {
	b := p.Of(r)
	present := img.Lookup(r.Writes[0]).Kind() != change.KindAbsent
	group, ok, err := r.GroupOf(m, img)
	if err != nil || !ok {
		if present {
			pl.Bares.Put(ItemRule{b, key}, &Bare{Last: img})
		}
		return
	}
	ref := GroupRef{b, group}
	ru := pl.Rollups.Of(ref)
	if ru == nil {
		ru = &Rollup{}
		pl.Rollups.Put(ref, ru)
	}
	ru.Present = ru.Present || present
}

// MoveFrom is the move of a ledger entry that was read to what the item, read after it, asks for.
func (p *Planner) MoveFrom(key change.Key, ent *Entry, img change.Image, sc Scope) *Move {
	mv := &Move{Key: key, First: -1, New: p.effectsOf(key, img), Seeding: sc == Sources}
	p.groups(mv.New, mv.touch)
	mv.Expect(ent, p.Bindings)
	mv.To = VersionAt(p.Epoch, change.Position{})
	if ent != nil {
		mv.To, mv.Rederived = ent.At.UnderEpoch(p.Epoch), ent.Rederived+1
	}
	return mv
}
