package plan

import (
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/rules"
)

// Scope says how much of an item rederiving looks at.
type Scope uint8

// The scopes.
const (
	// Sources is what seeding needs: the item's effects, and what it takes from others.
	Sources Scope = iota
	// Itself also shows what is displayed on the item, heals it where rules made it,
	// and looks at leftovers: for items that all come by.
	Itself
	// Everything also fills its children anew, and parks anew what cannot be read.
	Everything
)

// Late is what records tell of an item that is rederived because they come late, or cannot be read.
type Late struct {
	Position change.Position         // of the last of them; zero if none is known
	Touched  []GroupRef              // aggregates that their images name
	Former   map[string][]change.Key // rule id: parents that their images refer to
	Shown    map[string]change.Key   // rule id: the parent, of other items, that the item itself is in the image told last
	Gone     map[string][]change.Key // rule id: the parents as which the item was deleted, without those that it was again since
	Back     map[string]bool         // rule id: the item was deleted as a parent, and was one again since
	Unread   bool                    // an image of one of them could not be read, or names no parent
}

// Late gathers what records tell of each item.
func (p *Planner) Late(records []change.Record) *OrderedMap[change.Key, Late] {
	lates := &OrderedMap[change.Key, Late]{}
	for i := range records {
		rec := &records[i]
		late := lates.OrPut(rec.Key, Late{Gone: map[string][]change.Key{}, Back: map[string]bool{}})
		if rec.Position.Compare(late.Position) > 0 {
			late.Position = rec.Position
		}
		late.Unread = late.Unread || rec.Old == nil && rec.New == nil
		p.tellBoth(late, rec)
	}
	return lates
}

// tellBoth adds what both images of a record say, and whether a parent was deleted: not one that became another item, or is there again.
func (p *Planner) tellBoth(late *Late, rec *change.Record) {
	late.Shown = nil
	p.tell(late, rec.Key, rec.Old)
	before := late.Shown
	late.Shown = nil
	p.tell(late, rec.Key, rec.New)
	for _, shown := range []map[string]change.Key{before, late.Shown} {
		for id, parent := range shown {
			if i := slices.Index(late.Gone[id], parent); i >= 0 {
				late.Gone[id] = slices.Delete(late.Gone[id], i, i+1)
				late.Back[id] = true
			}
		}
	}
	for id, parent := range before {
		if rec.New == nil {
			late.Gone[id] = append(late.Gone[id], parent)
		}
	}
}

// tell adds what one image says of its item.
func (p *Planner) tell(late *Late, key change.Key, img change.Image) {
	p.groups(p.EffectsOf(key, img), func(g GroupRef) {
		if !slices.Contains(late.Touched, g) {
			late.Touched = append(late.Touched, g)
		}
	})
	if m := p.MatchOf(key, img); m.Entity != nil {
		for _, b := range p.InForce {
			b.Family.Tell(late, b, &m, img)
		}
	}
}

// Rederive plans what an item, as it is now, asks for. What rules left on the item is planned by package leftovers.
func (p *Planner) Rederive(pl *Changes, key change.Key, ent *Entry, img change.Image, sc Scope, late Late) *Move {
	mv := p.MoveFrom(key, ent, img, sc, late)
	mv.ReparkRefused = sc == Everything
	mv.Repark = mv.ReparkRefused && mv.AsksForParking()
	it := &Item{Key: key, Image: img, Match: p.MatchOf(key, img), Scope: sc, Late: late}
	for _, b := range p.InForce {
		b.Family.Rederive(p, pl, b, it)
	}
	if img != nil && sc == Everything && it.Match.Entity != nil {
		for _, ru := range pl.Rollups.All() {
			ru.Asked = true
		}
	}
	return mv
}

// MoveFrom is the move of a ledger entry that was read to what the item, read after it, asks for.
func (p *Planner) MoveFrom(key change.Key, ent *Entry, img change.Image, sc Scope, late Late) *Move {
	mv := &Move{Key: key, First: -1, FromItem: true, New: p.EffectsOf(key, img), Seeding: sc == Sources, Late: late}
	p.groups(mv.New, mv.touch)
	mv.Expect(ent, p.Bindings)
	mv.To = stamp.VersionAt(p.Epoch, change.Position{})
	if ent != nil {
		mv.To, mv.Rederived = ent.At.UnderEpoch(p.Epoch), ent.Rederived+1
	}
	for _, g := range late.Touched {
		mv.touch(g)
	}
	p.raise(mv, ent)
	return mv
}

// raise takes the entry to the position of a record that is not applied, even if the effects stay: the item was read after it, and an
// earlier record that is still to come must not undo that.
func (p *Planner) raise(mv *Move, ent *Entry) {
	to := stamp.VersionAt(p.Epoch, mv.Late.Position)
	if mv.Late.Position.IsZero() || ent != nil && ent.At.Covers(to) || !p.feedsLedger(mv.Key) {
		return
	}
	mv.To, mv.Rederived, mv.Raised = to, 1, true
}

// feedsLedger reports whether an item under this key can have a ledger entry.
func (p *Planner) feedsLedger(key change.Key) bool {
	return slices.ContainsFunc(p.Set.Entities, func(e *rules.Entity) bool { return FeedsLedger(e) && e.HasKey(key) })
}

// Derives reports whether deriving looks at items with a key.
func (p *Planner) Derives(key change.Key) bool {
	return slices.ContainsFunc(p.Set.Entities, func(ent *rules.Entity) bool {
		return (FeedsLedger(ent) || len(ent.Children)+len(ent.Own) > 0) && ent.HasKey(key)
	})
}
