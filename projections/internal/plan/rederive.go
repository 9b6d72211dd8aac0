package plan

import (
	"slices"

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
	// Itself also shows what is displayed on the item, heals it where it is a mirror
	// item, and takes off what retired rules left: for items that all come by.
	Itself
	// Everything also fills its children anew, and parks anew what cannot be read.
	Everything
)

// Late is what records tell of an item that is rederived instead of having them
// applied: because they come late, or cannot be read.
type Late struct {
	Position change.Position         // of the last of them; zero if none is known
	Touched  []GroupRef              // aggregates that their images name
	Former   map[string][]change.Key // rule id: parents that their images refer to
	Unread   bool                    // an image of one of them could not be read, or names no parent
}

// Late gathers what records tell of each item.
func (p *Planner) Late(records []change.Record) *Asked[change.Key, Late] {
	lates := &Asked[change.Key, Late]{}
	for i := range records {
		rec := &records[i]
		late := lates.Of(rec.Key)
		if late == nil {
			late = &Late{}
			lates.Put(rec.Key, late)
		}
		if rec.Position.Compare(late.Position) > 0 {
			late.Position = rec.Position
		}
		late.Unread = late.Unread || rec.Old == nil && rec.New == nil
		p.tell(late, rec.Key, rec.Old)
		p.tell(late, rec.Key, rec.New)
	}
	return lates
}

// tell adds what one image says of its item.
func (p *Planner) tell(late *Late, key change.Key, img change.Image) {
	p.groups(p.effectsOf(key, img), func(g GroupRef) {
		if !slices.Contains(late.Touched, g) {
			late.Touched = append(late.Touched, g)
		}
	})
	if img == nil {
		return
	}
	m, ok := p.Set.Identify(key, img)
	if !ok {
		return
	}
	for _, r := range m.Entity.Children {
		parent, refers, bad := ReferenceIn(r, &m, img)
		late.Unread = late.Unread || bad != nil
		if id := p.Of(r).ID; refers && !slices.Contains(late.Former[id], parent) {
			if late.Former == nil {
				late.Former = map[string][]change.Key{}
			}
			late.Former[id] = append(late.Former[id], parent)
		}
	}
}

// Rederive plans what an item, as it is now, asks for.
func (p *Planner) Rederive(pl *Changes, key change.Key, ent *Entry, img change.Image, sc Scope, late Late) *Move {
	mv := p.MoveFrom(key, ent, img, sc, late)
	mv.Reparks = sc == Everything
	mv.Repark = mv.Reparks && mv.New.HasParked()
	if sc == Everything {
		p.refills(pl, key, late.Position)
	}
	if sc >= Itself {
		p.healPlaces(pl, key, img, sc)
	}
	var m rules.Match
	ok := false
	if img != nil {
		m, ok = p.Set.Identify(key, img)
	}
	p.fills(pl, key, img, &m, sc, late)
	if img == nil || sc < Itself {
		return mv
	}
	p.leftovers(pl, key, 0, img, m.Entity)
	p.formerly(pl, key, 0, nil, img, m.Entity)
	if !ok {
		return mv
	}
	for _, r := range m.Entity.Displays {
		p.Display(pl, r, key, &m, img)
	}
	if sc == Everything {
		for _, ru := range pl.Rollups.All() {
			ru.Asked = true
		}
	}
	return mv
}

// fills plans the filling of an item by every copy rule of which it is a child, and
// of which late records tell that it was one: their references go, and what was parked.
func (p *Planner) fills(pl *Changes, key change.Key, img change.Image, m *rules.Match, sc Scope, late Late) {
	for _, r := range p.Set.Rules {
		if !r.HasParent() || !r.Target.HasKey(key) {
			continue
		}
		b := p.Of(r)
		f := &Fill{Position: late.Position, Gone: m.Entity != r.Target, WasBad: late.Unread, Former: late.Former[b.ID], Repark: sc == Everything}
		asked := f.WasBad || len(f.Former) > 0
		if !f.Gone {
			f.Parent, f.Refers, f.Bad = ReferenceIn(r, m, img)
			asked = asked || f.Refers || f.Bad != nil || holds(b, img)
		}
		if asked {
			pl.Fills.Put(ItemRule{b, key}, f)
		}
	}
}

// holds reports whether an item holds anything that the rule writes.
func holds(b *Binding, img change.Image) bool {
	return img.Lookup(b.Stamp).Kind() != change.KindAbsent || slices.ContainsFunc(b.Rule.Writes, func(name string) bool {
		return img.Lookup(name).Kind() != change.KindAbsent
	})
}

// refills plans the filling of an item's children, for every copy rule of which it can be the parent, there or gone.
func (p *Planner) refills(pl *Changes, key change.Key, position change.Position) {
	for _, r := range p.Set.Rules {
		if r.HasParent() && r.Source.HasKey(key) {
			pl.Refills = append(pl.Refills, Refill{ItemRule{p.Of(r), key}, position})
		}
	}
}

// healPlaces plans the healing of an item for every mirror rule that can give it,
// whatever it is now: what tells the mirror's entity may have been overwritten.
func (p *Planner) healPlaces(pl *Changes, key change.Key, img change.Image, sc Scope) {
	for _, b := range p.mirrors {
		if b.Rule.Target.HasKey(key) {
			pl.Heals.Put(ItemRule{b, key}, &Heal{Last: img, Repark: sc == Everything})
		}
	}
}

// Display plans what one item displays under a rule, as it is now.
func (p *Planner) Display(pl *Changes, r *rules.Rule, key change.Key, m *rules.Match, img change.Image) {
	b := p.Of(r)
	present := img.Lookup(r.Writes[0]).Kind() != change.KindAbsent
	group, ok, err := r.Form.(rules.Adder).GroupOf(m, img)
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
	if ru.Seen == nil {
		ru.Seen = map[change.Key]change.Image{}
	}
	ru.Seen[key] = img
}

// MoveFrom is the move of a ledger entry that was read to what the item, read after it, asks for.
func (p *Planner) MoveFrom(key change.Key, ent *Entry, img change.Image, sc Scope, late Late) *Move {
	mv := &Move{Key: key, First: -1, New: p.effectsOf(key, img), Seeding: sc == Sources, Late: late}
	p.groups(mv.New, mv.touch)
	mv.Expect(ent, p.Bindings)
	mv.To = VersionAt(p.Epoch, change.Position{})
	if ent != nil {
		mv.To, mv.Rederived = ent.At.UnderEpoch(p.Epoch), ent.Rederived+1
	}
	for _, g := range late.Touched {
		mv.touch(g)
	}
	p.raise(mv, ent)
	return mv
}

// raise takes the entry to the position of a record that is not applied, even if
// the effects stay: the item was read after that record, which an earlier one that
// is still to come must not undo.
func (p *Planner) raise(mv *Move, ent *Entry) {
	to := VersionAt(p.Epoch, mv.Late.Position)
	if mv.Late.Position.IsZero() || ent != nil && ent.At.Has(to) || !p.feedsLedger(mv.Key) {
		return
	}
	mv.To, mv.Rederived, mv.Raised = to, 1, true
}

// feedsLedger reports whether an item under this key can have a ledger entry.
func (p *Planner) feedsLedger(key change.Key) bool {
	return slices.ContainsFunc(p.Set.Entities, func(e *rules.Entity) bool { return FeedsLedger(e) && e.HasKey(key) })
}
