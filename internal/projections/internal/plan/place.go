package plan

import (
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/rules"
)

// MadeAttribute marks an item that the engine made. Only such an item is ever
// deleted (promise 8). Its value is MadeMark of the item's own key, so that a
// clone under another key is not taken for one.
const MadeAttribute = "_dm"

// MadeMark is the value of MadeAttribute on an item that the engine made.
func MadeMark(item change.Key) string { return change.Digest(change.String(item.String())) }

// Place is the state of the key at which a mirror item belongs.
type Place uint8

// The places.
const (
	PlaceFree     Place = iota + 1 // no item stands there
	PlaceMade                      // the engine made the item there
	PlaceTheirs                    // the application made the item; it is of the target's entity
	PlaceOccupied                  // the application made the item; it is of another entity
)

// PlaceOf tells the place at a target's key from the item there; nil: none.
func PlaceOf(b *Binding, target change.Key, img change.Image) Place {
	switch {
	case img == nil:
		return PlaceFree
	case img.Lookup(MadeAttribute).Equal(change.String(MadeMark(target))):
		return PlaceMade
	case b.Rule.Target.Is(img):
		return PlaceTheirs
	}
	return PlaceOccupied
}

// Occupies reports whether an item of another entity stands at a target's key.
func Occupies(b *Binding, target change.Key, img change.Image) bool {
	return img != nil && len(b.Rule.Target.Equals) > 0 && PlaceOf(b, target, img) == PlaceOccupied
}

// OccupiedCode is the code under which (rule, target) is parked while an item of another entity stands there.
const OccupiedCode = "mirror.occupied"

func occupied(target change.Key) *rules.ItemError {
	return &rules.ItemError{Code: OccupiedCode, Reason: "an item of another entity stands where a mirror item belongs, under the key " +
		target.String() +
		": move or delete that item, or change the key template of the mirror's entity"}
}

// See notes the item that stands at a mirror target's key; nil: none.
func (mv *Move) See(target change.Key, img change.Image) {
	if mv.Seen == nil {
		mv.Seen = map[change.Key]change.Image{}
	}
	mv.Seen[target] = img
	for id, f := range mv.New {
		if img != nil && f.Expired && f.Target == target && !mv.Old[id].Expired {
			mv.expire(id, false) // another program has put an item there since
		}
	}
}

// placeAt is the place at a target as the move saw it, or else as it is expected to be.
func (mv *Move) placeAt(b *Binding, target change.Key, expected Place) Place {
	if img, seen := mv.Seen[target]; seen {
		return PlaceOf(b, target, img)
	}
	return expected
}

// held reports whether the ledger has a mirror item in force at a target.
func (mv *Move) held(target change.Key) bool {
	for _, f := range mv.Old {
		if f.Kind == Mirrored && f.Target == target && !f.Expired {
			return true
		}
	}
	return false
}

// Upsert is the actions that write a mirror item. Where an item of another entity
// stands at its key they leave that alone, and park the rule on the target.
func (p *Planner) Upsert(mv *Move, b *Binding, f Effect, expected Place) []Action {
	place := mv.placeAt(b, f.Target, expected)
	if place == PlaceOccupied {
		yield := p.leave(b, f.Target, place, mv.Seen[f.Target])
		return []Action{yield, parkAction(b.ID, f.Target, Effect{Kind: Parked, Parked: occupied(f.Target)})}
	}
	a := Action{
		Kind: UpsertMirror, Place: place, Item: targetItem(f.Target), ID: b.ID, Binding: b, Target: f.Target, Effect: f,
		Removes: p.takenOver(mv, b, f.Target),
	}
	for _, name := range b.Rule.Writes {
		if v, ok := f.Content[name]; ok {
			a.Bytes += v.Size()
		}
	}
	return append([]Action{a}, mv.unparkTarget(b, f.Target)...)
}

// Drop is the actions that take a rule's mirror item away: one that the engine made
// goes as a whole. Off the application's own item go the rule's attributes and its stamp.
func (p *Planner) Drop(mv *Move, b *Binding, target change.Key) []Action {
	place := mv.placeAt(b, target, PlaceMade)
	a := p.leave(b, target, place, mv.Seen[target])
	if place == PlaceMade {
		a.Kind = DeleteMirror
	}
	return append([]Action{a}, mv.unparkTarget(b, target)...)
}

// leave is the action that leaves to the application what stands at a target, without the rule's marks.
func (p *Planner) leave(b *Binding, target change.Key, place Place, img change.Image) Action {
	a := Action{Kind: SpareMirror, Place: place, Item: targetItem(target), ID: b.ID, Binding: b, Target: target}
	if img != nil && Stamped(b, StampContext(p.Incarnation, target, ""), img) {
		a.Kind, a.Seen, a.Removes = ReleaseMirror, img, append(released(b, place, img), b.Stamp)
	}
	return a
}

// unparkTarget clears what may be parked of a rule on a target that was looked at.
// Without a look the place is as the ledger has it, and nothing is parked there.
func (mv *Move) unparkTarget(b *Binding, target change.Key) []Action {
	if _, seen := mv.Seen[target]; !seen || len(b.Rule.Target.Equals) == 0 {
		return nil
	}
	return []Action{unparkAction(b.ID, target)}
}

// released are the attributes that a rule gives up on an item of the application's:
// those that it writes, but for what tells the item's entity. On an item that has
// become one of another entity only what the stamp proves to be the rule's goes.
func released(b *Binding, place Place, img change.Image) []string {
	if place == PlaceOccupied {
		stamp, _ := parseStamp(img.Lookup(b.Stamp))
		if stamp.Digest != DigestOf(b, asTarget{img, b.Rule.Target}) {
			return nil
		}
	}
	return ownWrites(b.Rule)
}

// ownWrites are the attributes that a rule writes, but for those that tell its target's entity.
func ownWrites(r *rules.Rule) []string {
	return slices.DeleteFunc(slices.Clone(r.Writes), func(name string) bool {
		return slices.ContainsFunc(r.Target.Equals, func(eq rules.Equals) bool { return eq.Attribute == name })
	})
}

// asTarget is an item as if it were of an entity.
type asTarget struct {
	change.Image
	entity *rules.Entity
}

// Lookup returns an attribute's value.
func (a asTarget) Lookup(name string) change.Value {
	for _, eq := range a.entity.Equals {
		if eq.Attribute == name {
			return eq.Value
		}
	}
	return a.Image.Lookup(name)
}
