package plan

import (
	"iter"
	"slices"

	"github.com/dynamill/dynamill/change"
)

// ItemRule is one rule on one item: a target to heal, a parent to fan out, a child to fill.
type ItemRule struct {
	*Binding
	Key change.Key
}

// Changes is what a batch of records asks for. Every part says which record asked first: its failure is that record's.
type Changes struct {
	Moves    OrderedMap[change.Key, Move]
	Rollups  OrderedMap[GroupRef, Rollup]
	Relevant int
	Seen     Seen
	parts    []any // of families and Classifiers, each of a type of its own: see PartOf
}

// Rollup is a group to bring up to date: a display, a claimed mirror item, or the children of a unique value.
type Rollup struct {
	First       int
	Present     bool                        // the target may hold a value, so that even a sum over nothing must be written
	Corrections map[change.Key]bool         // targets on which it is a correction of a foreign write: it counts against the bound
	Expired     bool                        // a record says that DynamoDB's time to live deleted the target
	Showed      int64                       // if Expired or Deleted: the count of operations in the target's stamp; 0: no stamp of the rule
	Deleted     bool                        // a record says that it was deleted in another way
	Looked      bool                        // the target is looked at, and written only if it is not right
	Asked       bool                        // the sum may have changed: it is written on the target, even if that was not seen
	Wrote       map[change.Key]bool         // targets on which another program wrote
	Relocated   []change.Key                // items that took or gave up the unique value by which the target is found
	Seen        map[change.Key]change.Image // targets as they were read before the sum was
	Marks       []*Move                     // moves whose due marks can be cleared once this is shown
}

// MayWait reports whether nothing but a change of the group asks for the roll-up, which may come later then.
func (ru *Rollup) MayWait() bool {
	return ru.Asked && !ru.Expired && !ru.Deleted && !ru.Looked &&
		len(ru.Wrote)+len(ru.Corrections)+len(ru.Relocated)+len(ru.Seen) == 0
}

// Note puts a target in a set.
func Note(set *map[change.Key]bool, target change.Key) {
	if *set == nil {
		*set = map[change.Key]bool{}
	}
	(*set)[target] = true
}

// Hides reports whether the sum must go off an item that lost its unique value: the engine looked at it, another program wrote on it,
// or this item, or one that sorts between before and target, took the value.
func (ru *Rollup) Hides(before, target change.Key) bool {
	return ru.Seen[target] != nil || ru.Wrote[target] || slices.ContainsFunc(ru.Relocated, func(moved change.Key) bool {
		return moved == target || moved.String() >= before.String() && moved.String() < target.String()
	})
}

// AddRollups adds what a move touched to what is to be rolled up.
func (pl *Changes) AddRollups(mv *Move, first int) {
	for _, g := range slices.Concat(mv.Touched, mv.Due) {
		ru := pl.Rollups.OrPut(g, Rollup{First: first})
		ru.First, ru.Asked = min(ru.First, first), true
		if mv.relocates(g) && !slices.Contains(ru.Relocated, mv.Key) {
			ru.Relocated = append(ru.Relocated, mv.Key)
		}
		if slices.Contains(mv.Due, g) && (mv.MarkedEntry().At == mv.To || len(mv.Entry.Due) > 0) {
			ru.Marks = append(ru.Marks, mv) // its entry holds the mark
		}
	}
}

// OrderedMap holds parts of one kind in the order in which they were first asked for: Go's maps would change it with every run.
type OrderedMap[K comparable, P any] struct {
	parts map[K]*P
	order []K
}

// Of returns the part under a key; nil if there is none. A nil OrderedMap has none.
func (a *OrderedMap[K, P]) Of(key K) *P {
	if a == nil {
		return nil
	}
	return a.parts[key]
}

// Put sets the part under a key.
func (a *OrderedMap[K, P]) Put(key K, part *P) {
	if a.parts == nil {
		a.parts = map[K]*P{}
	}
	if a.parts[key] == nil {
		a.order = append(a.order, key)
	}
	a.parts[key] = part
}

// OrPut returns the part under a key, which is first if there was none.
func (a *OrderedMap[K, P]) OrPut(key K, first P) *P {
	if part := a.Of(key); part != nil {
		return part
	}
	a.Put(key, &first)
	return a.parts[key]
}

// All ranges over the parts.
func (a *OrderedMap[K, P]) All() iter.Seq2[K, *P] {
	return func(yield func(K, *P) bool) {
		for _, key := range a.order {
			if !yield(key, a.parts[key]) {
				return
			}
		}
	}
}

// Keys are what the parts are about, in their order. They are not to be changed.
func (a *OrderedMap[K, P]) Keys() []K { return a.order }
