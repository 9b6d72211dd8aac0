package mirrors

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/rules"
)

// mirrorItem is the effect of a mirror rule: an item for which a source asks.
type mirrorItem struct {
	content map[string]change.Value // nil in one that is read from the ledger
	target  change.Key
	digest  string // of the content: its first entryDigits if it is read from the ledger

	// expired says that DynamoDB's time to live deleted the item: it stays
	// away until its source asks for other content, or another program writes there.
	expired bool
}

var (
	_ plan.Owner           = kind{}
	_ effects.FamilyEffect = mirrorItem{}
	_ plan.Adapter         = mirrorItem{}
)

// The marks with which the text of an effect begins.
const (
	inForceMark = "="
	expiredMark = "~"
)

// entryDigits are the digits of the content's digest that a ledger entry holds. They tell that a lost record changed the content. Only
// where an entry is not as a record expects it do they alone tell whether content differs: docs/adr/0025-small-stamps.md.
const entryDigits = 4

// itemOf is the item of an effect; false if the effect is another one.
func itemOf(f effects.Effect) (mirrorItem, bool) {
	it, ok := f.FamilyEffect.(mirrorItem)
	return it, ok
}

// itemIn is the item of the effect that a rule has at a target; false if it has none there.
func itemIn(fs effects.ByKey, b *plan.Binding, target change.Key) (effects.Key, mirrorItem, bool) {
	k := keyAt(b, target)
	it, ok := itemOf(fs[k])
	if !ok || it.target != target {
		return k, mirrorItem{}, false
	}
	return k, it, true
}

func (it mirrorItem) effect() effects.Effect {
	return effects.Effect{Kind: effects.OfFamily, Group: it.target.String(), FamilyEffect: it}
}

// String implements effects.FamilyEffect.
func (it mirrorItem) String() string {
	mark := inForceMark
	if it.expired {
		mark = expiredMark
	}
	return mark + it.digest[:entryDigits] + it.target.String()
}

// Same implements effects.FamilyEffect.
func (it mirrorItem) Same(other effects.FamilyEffect) bool {
	o, ok := other.(mirrorItem)
	return ok && it.expired == o.expired && it.isSame(o)
}

// Wanted implements effects.FamilyEffect: the item as its source asks for it, not expired.
func (it mirrorItem) Wanted() effects.FamilyEffect {
	it.expired = false
	return it
}

// isSame reports whether two effects ask for the same item.
func (it mirrorItem) isSame(other mirrorItem) bool {
	return it.target == other.target && it.hasContent(other.digest)
}

// hasContent reports whether the item holds the content of a digest. Both tell it as a whole unless one is read from the ledger.
func (it mirrorItem) hasContent(digest string) bool {
	return strings.HasPrefix(it.digest, digest) || strings.HasPrefix(digest, it.digest)
}

// Adapt implements plan.Adapter: an item that expired stays away as long as its source asks for
// the same, unless it is to be written again, or another program has put one there since.
func (it mirrorItem) Adapt(mv *plan.Move, k effects.Key) effects.FamilyEffect {
	held, _ := itemOf(mv.Old[k])
	target, restored := mv.Restore[k]
	switch {
	case restored && target == it.target:
		it.expired = false
	case held.expired && held.isSame(it):
		it.expired = true
	case mv.Seen[it.target] != nil && !held.expired:
		it.expired = false
	}
	return it
}

// ReadEffect implements plan.Owner.
func (kind) ReadEffect(text string) (effects.Effect, error) {
	mark, rest := text[:1], text[1:]
	if mark != inForceMark && mark != expiredMark || len(rest) < entryDigits {
		return effects.Effect{}, fmt.Errorf("the unknown effect %q", text)
	}
	return mirrorItem{digest: rest[:entryDigits], target: change.ParseKey(rest[entryDigits:]), expired: mark == expiredMark}.effect(), nil
}

// difference is what the next transaction of a move writes for one effect.
type difference struct {
	*plan.Planner
	mv *plan.Move
	b  *plan.Binding
	k  effects.Key
}

// Differ implements plan.Owner.
func (kind) Differ(p *plan.Planner, mv *plan.Move, b *plan.Binding, k effects.Key) (all []plan.Action) {
	d := difference{p, mv, b, k}
	was, had := itemOf(mv.Old[k])
	now, asks := itemOf(mv.After(k))
	same := had && asks && was.Same(now)
	target, restored := mv.Restore[k]
	restoresItem := restored && asks && target == now.target
	if b.Claimed() {
		if same && !restoresItem {
			return nil
		}
		if had && !(asks && now.target == was.target) {
			all = append(all, d.action(was.target, targetWrite{do: disclaims}))
		}
		if asks {
			all = append(all, d.action(now.target, targetWrite{do: claims, item: now}))
		}
		return all
	}
	switch {
	case same:
	case now.expired && had && was.isSame(now):
		all = append(all, d.action(now.target, targetWrite{do: spares, place: placeAt(mv, b, now.target, placeFree)}))
	default:
		if had && !(asks && now.target == was.target) {
			all = append(all, d.drop(was.target)...)
		}
		if asks {
			expected := placeFree
			if d.holds(now.target) {
				expected = placeMade
			}
			all = append(all, d.upsert(now, expected)...)
		}
	}
	if restored && !slices.ContainsFunc(all, func(a plan.Action) bool { return a.Looks && a.Target == target }) {
		if restoresItem {
			return append(all, d.upsert(now, placeMade)...)
		}
		return append(all, d.drop(target)...)
	}
	return all
}

// holds reports whether the ledger has an item in force at a target.
func (d difference) holds(target change.Key) bool {
	for _, f := range d.mv.Old {
		if it, ok := itemOf(f); ok && it.target == target && !it.expired {
			return true
		}
	}
	return false
}

// deed is what a write does with the item at a target.
type deed uint8

const (
	upserts   deed = iota + 1 // writes the item
	deletes                   // deletes the item, which the engine made
	releases                  // takes the rule's attributes and stamp off an item that the application made
	spares                    // leaves what stands there
	claims                    // claims the target for the source: see Claim
	disclaims                 // drops the source's claim
)

// targetWrite is an action of a mirror rule.
type targetWrite struct {
	do      deed
	place   place        // what must stand there
	seen    change.Image // of releases: the item as it was seen
	item    mirrorItem   // asked for
	removes []string     // attributes to take off beside those that the item does not have
}

// action is a write as an action on a target.
func (d difference) action(target change.Key, w targetWrite) plan.Action {
	a := plan.Action{
		Kind: plan.FamilyAction, Item: "target/" + target.String(), Key: d.k, Binding: d.b, Target: target, FamilyData: w,
		Reads: w.do == claims || w.do == disclaims,
	}
	a.Looks = !a.Reads
	a.Writes = a.Looks && w.do != spares
	for _, name := range d.b.Rule.Writes {
		if v, ok := w.item.content[name]; ok {
			a.Bytes += v.Size()
		}
	}
	return a
}

// upsert is the actions that write an item. Where an item of another entity
// stands at its key they leave that alone, and park the rule on the target.
func (d difference) upsert(it mirrorItem, expected place) []plan.Action {
	at := placeAt(d.mv, d.b, it.target, expected)
	if at == placeOccupied {
		why := effects.ParkedBy(&rules.ItemError{Code: occupiedCode, Reason: "an item of another entity stands where a mirror item belongs, " +
			"under the key " + it.target.String() + ": move or delete that item, or change the key template of the mirror's entity"})
		return []plan.Action{d.leave(it.target, at), plan.ParkAction(d.k, it.target, why)}
	}
	w := d.action(it.target, targetWrite{do: upserts, place: at, item: it, removes: d.takenOver(it.target)})
	return append([]plan.Action{w}, d.unpark(it.target)...)
}

// drop is the actions that take an item away: one that the engine made
// goes as a whole. Off the application's own item go the rule's attributes and its stamp.
func (d difference) drop(target change.Key) []plan.Action {
	at := placeAt(d.mv, d.b, target, placeMade)
	w := d.leave(target, at)
	if at == placeMade {
		w = d.action(target, targetWrite{do: deletes, place: at})
	}
	return append([]plan.Action{w}, d.unpark(target)...)
}

// leave is the action that leaves to the application what stands at a target, without the rule's marks.
func (d difference) leave(target change.Key, at place) plan.Action {
	w, img := targetWrite{do: spares, place: at}, d.mv.Seen[target]
	if plan.Stamped(d.b, stamp.Context(d.Incarnation, target, ""), img) {
		w.do, w.seen, w.removes = releases, img, append(plan.Released(d.b, img), d.b.Stamp)
	}
	return d.action(target, w)
}

// unpark clears what may be parked of a rule on a target that was looked at.
// Without a look the place is as the ledger has it, and nothing is parked there.
func (d difference) unpark(target change.Key) []plan.Action {
	if _, seen := d.mv.Seen[target]; !seen || len(d.b.Rule.Target.Equals) == 0 {
		return nil
	}
	return []plan.Action{plan.UnparkAction(d.k, target)}
}

// takenOver are the attributes that a former rule leaves on an item which the rule takes over from it.
func (d difference) takenOver(target change.Key) []string {
	var names []string
	for _, k := range d.mv.Old.Keys() {
		former := d.Former(k.ID)
		if it, ok := itemOf(d.mv.Old[k]); former == nil || !ok || it.target != target {
			continue
		}
		all := true
		for _, name := range former.Rule.Writes {
			switch {
			case slices.Contains(d.b.Rule.Writes, name): // it is written anew
			case d.isKept(name):
				all = false
			default:
				names = append(names, name)
			}
		}
		if all { // otherwise cleaning finds by the stamp what the others have not written
			names = append(names, former.Stamp)
		}
	}
	return names
}

// isKept reports whether a rule writes an attribute on items of the target's entity, or it tells that from others.
func (d difference) isKept(name string) bool {
	e := d.b.Rule.Target
	return slices.ContainsFunc(d.Set.Rules, func(r *rules.Rule) bool { return r.Target == e && slices.Contains(r.Writes, name) }) ||
		slices.ContainsFunc(e.Equals, func(eq rules.Equals) bool { return eq.Attribute == name })
}
