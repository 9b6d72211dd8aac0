package plan

import (
	"cmp"
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/rules"
)

// ActionKind is what an action does.
type ActionKind uint8

// The kinds of actions; 0 is none.
const (
	UpsertMirror  ActionKind = iota + 1 // writes the mirror item
	DeleteMirror                        // deletes the mirror item, provided that it carries our stamp
	SpareMirror                         // leaves the mirror item, provided that it carries none
	AddLocator                          // has the item found by a unique value
	RemoveLocator                       // has it found by that value no more
	Park                                // sets the (item, rule) aside
	Unpark                              // clears what was set aside
)

// Action is one write of a move's transaction that no other move may share.
type Action struct {
	Kind     ActionKind
	Item     string     // what it writes; unique within a transaction
	ID       string     // the rule (or locator) that asks for it
	*Binding            // the rule, of an action on a mirror item
	Target   change.Key // the mirror item
	Effect   Effect     // asked for, or for a locator taken back
	Removes  []string   // attributes that another rule leaves on a mirror item which this one takes over
	Bytes    int        // about what it carries
}

// Difference compares the effects in force with those asked for, and says what
// a move changes beside its ledger entry. Mirrors with claims are left out: see Claims.
func (bs *Bindings) Difference(mv *Move) ([]Sum, []Action) {
	var sums []Sum
	var rest []Action
	for _, id := range mv.IDs() {
		old, had := mv.Old[id]
		new, has := mv.New[id]
		same := had && has && old.String() == new.String()
		b := bs.ByID(id)
		switch {
		case same && new.Kind == Parked && mv.Repark:
			rest = append(rest, parkAction(mv, id, new))
		case same:
		case had && has && old.Kind == Contribution && new.Kind == Contribution && old.Group == new.Group:
			delta, err := new.Amount.Sub(old.Amount)
			if err != nil { // representable sums were made sure of by settle
				delta = new.Amount
			}
			sums = append(sums, Sum{GroupRef{b, new.Group}, delta})
		default:
			if had {
				s, a := bs.undo(mv, id, old, new)
				sums, rest = append(sums, s...), append(rest, a...)
			}
			if has {
				s, a := bs.redo(mv, id, new)
				sums, rest = append(sums, s...), append(rest, a...)
			}
		}
		if target, ok := mv.Restore[id]; ok && b.Rule.Injective && !slices.ContainsFunc(rest, func(a Action) bool { return a.Item == targetItem(target) }) {
			if has && new.Kind == Mirrored && new.Target == target {
				rest = append(rest, bs.Upsert(mv, b, new))
			} else {
				rest = append(rest, mv.Drop(b, target))
			}
		}
	}
	return sums, withoutReplaced(rest)
}

// withoutReplaced leaves out the deletions of mirror items that another rule takes over in the same move.
func withoutReplaced(rest []Action) []Action {
	return slices.DeleteFunc(rest, func(a Action) bool {
		return (a.Kind == DeleteMirror || a.Kind == SpareMirror) && slices.ContainsFunc(rest, func(b Action) bool {
			return b.Item == a.Item && b.Kind == UpsertMirror
		})
	})
}

func (bs *Bindings) undo(mv *Move, id string, old, new Effect) ([]Sum, []Action) {
	b := bs.ByID(id)
	switch old.Kind {
	case Contribution:
		if b != nil {
			return []Sum{{GroupRef{b, old.Group}, old.Amount.Neg()}}, nil
		}
	case Mirrored:
		replaced := new.Kind == Mirrored && new.Target == old.Target
		if b != nil && b.Rule.Injective && !replaced {
			return nil, []Action{mv.Drop(b, old.Target)}
		}
	case Located:
		if locator, _ := LocatorIn(id); bs.Locates(locator) {
			return nil, []Action{locatorAction(RemoveLocator, id, old)}
		}
	case Parked:
		if new.Kind != Parked {
			return nil, []Action{{Kind: Unpark, Item: parkedItem(mv, id), ID: id}}
		}
	}
	return nil, nil
}

func (bs *Bindings) redo(mv *Move, id string, new Effect) ([]Sum, []Action) {
	b := bs.ByID(id)
	switch new.Kind {
	case Contribution:
		return []Sum{{GroupRef{b, new.Group}, new.Amount}}, nil
	case Mirrored:
		if b.Rule.Injective {
			return nil, []Action{bs.Upsert(mv, b, new)}
		}
	case Located:
		return nil, []Action{locatorAction(AddLocator, id, new)}
	case Parked:
		return nil, []Action{parkAction(mv, id, new)}
	}
	return nil, nil
}

func targetItem(target change.Key) string { return "target/" + target.String() }

func parkedItem(mv *Move, id string) string { return "parked/" + id + "/" + mv.Key.String() }

func parkAction(mv *Move, id string, f Effect) Action {
	return Action{Kind: Park, Item: parkedItem(mv, id), ID: id, Effect: f}
}

func locatorAction(kind ActionKind, id string, f Effect) Action {
	return Action{Kind: kind, Item: "locator/" + id + "/" + f.Value, ID: id, Effect: f}
}

// Upsert writes a mirror item.
func (bs *Bindings) Upsert(mv *Move, b *Binding, f Effect) Action {
	a := Action{Kind: UpsertMirror, Item: targetItem(f.Target), ID: b.ID, Binding: b, Target: f.Target, Effect: f, Removes: bs.takenOver(mv, b, f.Target)}
	for _, name := range b.Rule.Writes {
		if v, ok := f.Mirror.Attributes[name]; ok {
			a.Bytes += v.Size()
		}
	}
	return a
}

// takenOver are the attributes that another rule leaves on a mirror item which b's rule takes over from it.
func (bs *Bindings) takenOver(mv *Move, b *Binding, target change.Key) []string {
	var names []string
	for _, id := range mv.Old.IDs() {
		old, former := mv.Old[id], cmp.Or(bs.ByID(id), bs.Former(id))
		if former == nil || former == b || old.Kind != Mirrored || old.Target != target || mv.New[id].Target == target {
			continue
		}
		wrote := slices.DeleteFunc(slices.Clone(former.Rule.Writes), func(name string) bool { return slices.Contains(b.Rule.Writes, name) })
		claimed := 0
		if former.Former {
			all := len(wrote)
			wrote = bs.unclaimed(wrote, b.Rule.Target)
			claimed = all - len(wrote)
		}
		names = append(names, wrote...)
		if claimed == 0 { // else cleaning finds by the stamp what the others have not written
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

// Drop deletes a mirror item that carries our stamp (promise 8), or, once it
// was seen without, makes sure that it still has none.
func (mv *Move) Drop(b *Binding, target change.Key) Action {
	kind := DeleteMirror
	if mv.Spare[target] {
		kind = SpareMirror
	}
	return Action{Kind: kind, Item: targetItem(target), ID: b.ID, Binding: b, Target: target}
}
