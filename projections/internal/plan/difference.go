package plan

import (
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/rules"
)

// ActionKind is what an action does.
type ActionKind uint8

// The kinds of actions; 0 is none.
const (
	UpsertMirror  ActionKind = iota + 1 // writes the mirror item
	DeleteMirror                        // deletes the mirror item, which the engine made
	ReleaseMirror                       // takes the rule's attributes and stamp off an item that the application made
	SpareMirror                         // leaves what stands at the target's key
	AddLocator                          // has the item found by a unique value
	RemoveLocator                       // has it found by that value no more
	Park                                // sets the (item, rule) aside
	Unpark                              // clears what was set aside
)

// Action is one write of a move's transaction that no other move may share.
type Action struct {
	Kind     ActionKind
	Item     string       // what it writes; unique within a transaction
	ID       string       // the rule (or locator) that asks for it
	*Binding              // the rule, of an action on a mirror item
	Target   change.Key   // the mirror item; of Park and Unpark the item that is parked
	Place    Place        // of an action on a mirror item: what must stand there
	Seen     change.Image // of ReleaseMirror: the item as it was seen
	Effect   Effect       // asked for, or for a locator taken back
	Removes  []string     // attributes to take off a mirror item beside those that the effect does not have
	Again    bool         // of Park: it is parked already
	Bytes    int          // about what it carries
}

// Difference compares the effects in force with those asked for, and says what
// a move changes beside its ledger entry. Mirrors with claims are left out: see Claims.
func (p *Planner) Difference(mv *Move) ([]Sum, []Action) {
	var sums []Sum
	var rest []Action
	for _, id := range mv.IDs() {
		if !mv.moves(id) {
			continue
		}
		old, had := mv.Old[id]
		new, has := mv.next(id)
		same := had && has && old.String() == new.String()
		b := p.ByID(id)
		switch {
		case same && new.Kind == Parked && mv.Repark:
			a := parkAction(id, mv.Key, new)
			a.Again = true
			rest = append(rest, a)
		case same:
		case new.Expired && old.sameMirror(new):
			rest = append(rest, Action{Kind: SpareMirror, Place: mv.placeAt(b, new.Target, PlaceFree), Item: targetItem(new.Target), ID: id,
				Binding: b, Target: new.Target})
		case had && has && old.Kind == Contribution && new.Kind == Contribution && old.Group == new.Group:
			delta, _ := new.Amount.Sub(old.Amount) // next takes apart what no number holds
			sums = append(sums, Sum{GroupRef{b, new.Group}, delta, 0})
		default:
			if had {
				s, a := p.undo(mv, id, old, new)
				sums, rest = append(sums, s...), append(rest, a...)
			}
			if has {
				s, a := p.redo(mv, id, new)
				sums, rest = append(sums, s...), append(rest, a...)
			}
		}
		if target, ok := mv.Restore[id]; ok && !b.Claimed() && !slices.ContainsFunc(rest,
			func(a Action) bool { return a.Item == targetItem(target) }) {
			if has && new.Kind == Mirrored && new.Target == target {
				rest = append(rest, p.Upsert(mv, b, new, PlaceMade)...)
			} else {
				rest = append(rest, p.Drop(mv, b, target)...)
			}
		}
	}
	return sums, rest
}

func (p *Planner) undo(mv *Move, id string, old, new Effect) ([]Sum, []Action) {
	b := p.ByID(id)
	switch old.Kind {
	case Contribution:
		if b != nil {
			return []Sum{{GroupRef{b, old.Group}, old.Amount.Neg(), -1}}, nil
		}
	case Mirrored:
		replaced := new.Kind == Mirrored && new.Target == old.Target
		if b != nil && !b.Claimed() && !replaced {
			return nil, p.Drop(mv, b, old.Target)
		}
	case Located:
		if locator, ok := LocatorIn(id); ok && p.Locates(locator) {
			return nil, []Action{locatorAction(RemoveLocator, id, old)}
		}
	case Parked:
		if new.Kind != Parked {
			return nil, []Action{unparkAction(id, mv.Key)}
		}
	}
	return nil, nil
}

func (p *Planner) redo(mv *Move, id string, new Effect) ([]Sum, []Action) {
	b := p.ByID(id)
	switch new.Kind {
	case Contribution:
		return []Sum{{GroupRef{b, new.Group}, new.Amount, 1}}, nil
	case Mirrored:
		if !b.Claimed() {
			expected := PlaceFree
			if mv.held(new.Target) {
				expected = PlaceMade
			}
			return nil, p.Upsert(mv, b, new, expected)
		}
	case Located:
		return nil, []Action{locatorAction(AddLocator, id, new)}
	case Parked:
		return nil, []Action{parkAction(id, mv.Key, new)}
	}
	return nil, nil
}

func targetItem(target change.Key) string { return "target/" + target.String() }

func parkedItem(id string, item change.Key) string { return "parked/" + id + "/" + item.String() }

func parkAction(id string, item change.Key, f Effect) Action {
	return Action{Kind: Park, Item: parkedItem(id, item), ID: id, Target: item, Effect: f}
}

func unparkAction(id string, item change.Key) Action {
	return Action{Kind: Unpark, Item: parkedItem(id, item), ID: id, Target: item}
}

func locatorAction(kind ActionKind, id string, f Effect) Action {
	return Action{Kind: kind, Item: "locator/" + id + "/" + f.Value, ID: id, Effect: f}
}

// takenOver are the attributes that a former rule leaves on a mirror item which b's rule takes over from it.
func (bs *Bindings) takenOver(mv *Move, b *Binding, target change.Key) []string {
	var names []string
	for _, id := range mv.Old.IDs() {
		old, former := mv.Old[id], bs.Former(id)
		if former == nil || old.Kind != Mirrored || old.Target != target {
			continue
		}
		wrote := slices.DeleteFunc(slices.Clone(former.Rule.Writes), func(name string) bool { return slices.Contains(b.Rule.Writes, name) })
		gone := bs.unclaimed(wrote, b.Rule.Target)
		names = append(names, gone...)
		if len(gone) == len(wrote) { // otherwise cleaning finds by the stamp what the others have not written
			names = append(names, former.Stamp)
		}
	}
	return names
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
