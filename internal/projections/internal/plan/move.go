package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
)

// Move takes one source's ledger entry from one set of effects to another. Taken from records, it expects what the old image says and
// reads nothing; when that fails the entry itself decides.
type Move struct {
	Key      change.Key
	First    int  // index of the first record that asked for it; -1: none did
	FromItem bool // planned from the item as it is, not from images: it is read again after an entry that moved
	Position change.Position
	To       stamp.Version
	Old, New effects.ByKey
	Touched  []GroupRef // to be rolled up

	relocated []GroupRef // whose target is found by a unique value that the item took or gave up

	Exact     bool       // expect exactly this entry (nil: none) instead of the old image's effects
	Entry     *Entry     // with Exact
	Rederived int64      // written as Entry.Rederived
	Due       []GroupRef // to be marked due in the entry: no image tells of them

	Restore map[effects.Key]change.Key // items to write again even if the effect stays
	Alone   bool                       // goes in a transaction of its own, because a shared one failed

	Seen          map[change.Key]change.Image // items that were not as expected, as they are; nil: no item
	Step          map[effects.Key]bool        // what the next transaction moves; nil: all
	StepMax       int                         // most effects in one transaction; 0: as many as fit
	Shift         int                         // write suffixes to go on from the worker's own: the accumulators there could not hold the sum
	Consolidated  bool                        // the accumulators were brought together for the move
	Seeding       bool                        // rederived by seeding
	Repark        bool                        // rewrite parked records even if they stay
	ReparkRefused bool                        // also rewrite the parked record of an effect that DynamoDB refuses again
	Irrevocable   map[string]bool             // ids under which DynamoDB refused to take an effect back, which is parked
	Late          Late                        // of a rederived move: what records tell that are not applied
	Raised        bool                        // the entry goes to the position of such a record, even if the effects stay
}

// touch notes an aggregate that an image of the item names.
func (mv *Move) touch(g GroupRef) {
	if !slices.Contains(mv.Touched, g) {
		mv.Touched = append(mv.Touched, g)
	}
}

// relocate notes the aggregates whose targets are found by unique values in which two states of the item differ.
func (bs *Bindings) relocate(mv *Move, x, y effects.ByKey) {
	for _, fs := range []effects.ByKey{x.Without(y), y.Without(x)} {
		maps.DeleteFunc(fs, func(_ effects.Key, f effects.Effect) bool { return f.Kind != effects.Located })
		bs.groups(fs, func(g GroupRef) { mv.relocated = append(mv.relocated, g) })
	}
}

// relocates reports whether the item may have taken or given up the unique value by which an aggregate finds its target.
func (mv *Move) relocates(g GroupRef) bool {
	return slices.Contains(mv.relocated, g) || slices.Contains(mv.Due, g) || slices.Contains(mv.Late.Touched, g)
}

// Expect makes the move start from the entry that was found. Groups that no image will name are marked due in the entry, so that a
// crash before their roll-up does not forget them: those that lose what no image shows, and all that change of a rederived item.
func (mv *Move) Expect(e *Entry, bs *Bindings) {
	mv.Exact, mv.Entry, mv.Old, mv.Due, mv.Step = true, e, effects.ByKey{}, nil, nil
	mark := func(g GroupRef) {
		if !slices.Contains(mv.Due, g) {
			mv.Due = append(mv.Due, g)
		}
	}
	if e != nil {
		mv.Old = e.Effects
		mv.adapt()
		bs.relocate(mv, mv.Old, mv.New)
		for _, text := range e.Due {
			if g, ok := bs.parseDue(text); ok {
				mark(g)
			}
		}
	}
	if !mv.FromItem {
		for _, changed := range []effects.ByKey{mv.Old.Without(mv.New), mv.New.Without(mv.Old)} {
			bs.groups(changed, func(g GroupRef) {
				if !slices.Contains(mv.Touched, g) {
					mark(g)
				}
			})
		}
		return
	}
	bs.groups(mv.Old.Without(mv.New), mark)
	bs.groups(mv.New.Without(mv.Old), func(g GroupRef) {
		// What is seeded is shown when its rule goes live. One that went live since
		// still has the item's records to come, which tell of what it has, not of what it lost.
		if !mv.Seeding || !g.Rule.Displays() || g.Live.Load() {
			mark(g)
		}
	})
}

// Adapter is a family's own effect that depends on what a move knows. It is optional; a family that needs it asserts it
// (`var _ plan.Adapter`).
type Adapter interface {
	// Adapt is the effect as a move that asks for it under k brings it into force, by all that the move knows.
	Adapt(mv *Move, k effects.Key) effects.FamilyEffect
}

// adapt has each family bring its own effects into force.
func (mv *Move) adapt() {
	for k, f := range mv.New {
		if adapter, ok := f.FamilyEffect.(Adapter); ok {
			f.FamilyEffect = adapter.Adapt(mv, k)
			mv.Ask(k, f)
		}
	}
}

// Ask has the move bring another effect into force under a key; one of no kind: none.
func (mv *Move) Ask(k effects.Key, f effects.Effect) {
	if mv.New[k].String() == f.String() {
		return
	}
	mv.New = maps.Clone(mv.New)
	if mv.New[k] = f; f.Kind == 0 {
		delete(mv.New, k)
	}
}

// Replace has the move bring another effect into force under a key, and nothing else there; one of no kind: none.
func (mv *Move) Replace(k effects.Key, f effects.Effect) {
	mv.Ask(k, f)
	delete(mv.Restore, k)
	mv.Step = nil
}

// RestoreAt has the move write an item even if the effect under a key stays.
func (mv *Move) RestoreAt(k effects.Key, item change.Key) {
	if mv.Restore == nil {
		mv.Restore = map[effects.Key]change.Key{}
	}
	mv.Restore[k] = item
	mv.adapt()
}

// See notes an item as it is; nil: there is none.
func (mv *Move) See(item change.Key, img change.Image) {
	if mv.Seen == nil {
		mv.Seen = map[change.Key]change.Image{}
	}
	mv.Seen[item] = img
	mv.adapt()
}

func (bs *Bindings) parseDue(text string) (GroupRef, bool) {
	id, group, _ := strings.Cut(text, " ")
	b := bs.ByID(id)
	return GroupRef{b, group}, b != nil && b.Grouped()
}

// Keys are all that the move mentions, sorted.
func (mv *Move) Keys() []effects.Key {
	keys := slices.AppendSeq(make([]effects.Key, 0, len(mv.New)+len(mv.Old)), maps.Keys(mv.New))
	keys = slices.AppendSeq(slices.AppendSeq(keys, maps.Keys(mv.Old)), maps.Keys(mv.Restore))
	slices.SortFunc(keys, effects.Key.Compare)
	return slices.Compact(keys)
}

// AsksForParking reports whether the item asks for an effect that is parked.
func (mv *Move) AsksForParking() bool {
	return slices.ContainsFunc(mv.New.Keys(), func(k effects.Key) bool { return mv.New[k].Kind == effects.Parked })
}

// Idle reports whether a rederived move would change nothing.
func (mv *Move) Idle() bool {
	return mv.Old.Same(mv.New) && len(mv.Restore) == 0 && !mv.Repark && !mv.Raised && len(mv.Due) == 0
}

// HoldsStaleEffects reports whether the entry holds effects that the item does not ask for any more, refused ones aside.
func (mv *Move) HoldsStaleEffects() bool {
	for k, held := range mv.Old.Without(mv.New) {
		if _, wanted := mv.New[k]; !wanted || held.Kind != effects.Parked {
			return true
		}
	}
	return false
}

// MarkedEntry is the entry that holds the move's due mark: the one it wrote, or the one it found if it was done already.
func (mv *Move) MarkedEntry() *Entry {
	if mv.Entry != nil && mv.Entry.At.Covers(mv.To) && !mv.FromItem {
		return mv.Entry
	}
	return &Entry{At: mv.To, Rederived: mv.Rederived}
}
