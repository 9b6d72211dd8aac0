package plan

import (
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/rules"
)

// ItemRule is one rule on one item: a target to heal, a parent to fan out, a child to fill.
type ItemRule struct {
	*Binding
	Key change.Key
}

// Changes is what a batch of records asks for. Every part says which record was
// the first to ask for it, so that a failure of that part is a failure of that record.
type Changes struct {
	Moves     Asked[change.Key, Move]
	Rollups   Asked[GroupRef, Rollup]
	Heals     Asked[ItemRule, Heal]
	FanOuts   Asked[ItemRule, FanOut]
	Fills     Asked[ItemRule, Fill]
	Bares     Asked[ItemRule, Bare]
	Leftovers Asked[ItemRule, Leftover]
	Refills   []Refill
	Relevant  int
	Seen      Seen
}

// Bare is an item that displays an aggregate although it has no unique value to find it by.
type Bare struct {
	First     int
	Last      change.Image
	Contested bool // another program put the attribute there: counted against the bound
}

// Rollup is a display attribute that is due to be written anew.
type Rollup struct {
	First     int
	Present   bool                        // the target may hold a value, so that even a sum over nothing must be written
	Contested map[change.Key]bool         // targets on which it replaces what the engine had written: counted against the bound
	Asked     bool                        // the sum may have changed: it is written on the target, even if that was not seen
	Wrote     map[change.Key]bool         // targets on which another program wrote
	Relocated []change.Key                // items that took or gave up the unique value by which the target is found
	Seen      map[change.Key]change.Image // targets as they were read before the sum was
	Marks     []*Move                     // moves whose due marks can be cleared once this is shown
}

// note puts a target in a set.
func note(set *map[change.Key]bool, target change.Key) {
	if *set == nil {
		*set = map[change.Key]bool{}
	}
	(*set)[target] = true
}

// Hides reports whether the engine must take the sum off an item that lost its unique
// value. It must if the item may show a value: the engine looked at it, or another
// program wrote on it. It also must if this item took the value, or an item did that
// sorts between before and target: an item that showed the sum lost it to such a one.
func (ru *Rollup) Hides(before, target change.Key) bool {
	return ru.Seen[target] != nil || ru.Wrote[target] || slices.ContainsFunc(ru.Relocated, func(moved change.Key) bool {
		return moved == target || moved.String() >= before.String() && moved.String() < target.String()
	})
}

// Heal is a mirror item that another program changed, or that came or went.
type Heal struct {
	First     int
	Last      change.Image // nil: deleted
	Deleted   bool         // a record says that another program deleted it
	Expired   bool         // a record says that DynamoDB's time to live deleted it
	Freed     bool         // a record says that an item of another entity, for which the rule may be parked, has gone
	Repark    bool         // park the rule on it anew even if it is parked
	Contested bool         // it replaces what the engine had written: counted against the bound
}

// Refill is a parent whose children are to be filled anew.
type Refill struct {
	ItemRule
	Position change.Position // up to which the parent was read; zero: unknown
}

// FanOut is a parent whose copied attributes changed.
type FanOut struct {
	First    int
	Position change.Position
	Values   []change.Value
	Deleted  bool
}

// Fill is a child whose reference or copies changed.
type Fill struct {
	First     int
	Position  change.Position
	Parent    change.Key
	Refers    bool // parent is set
	Bad       *rules.ItemError
	WasBad    bool // an image before could not be read: what was parked is cleared
	Gone      bool
	Former    []change.Key // parents that images of the run refer to
	Contested bool
	Repark    bool // park the child anew even if it is parked
	Settled   bool // set when it is worked off: its reference, or its parking, stands already
	Stray     bool // set when it is worked off: the child is gone, or refers elsewhere by now
}

// AddRollups adds what a move touched to what is to be rolled up.
func (pl *Changes) AddRollups(mv *Move, first int) {
	mv.rollups(func(g GroupRef) {
		ru := pl.Rollups.Of(g)
		if ru == nil {
			ru = &Rollup{First: first}
			pl.Rollups.Put(g, ru)
		}
		ru.First, ru.Asked = min(ru.First, first), true
		if mv.relocates(g) && !slices.Contains(ru.Relocated, mv.Key) {
			ru.Relocated = append(ru.Relocated, mv.Key)
		}
		if mv.marked() && slices.Contains(mv.Due, g) {
			ru.Marks = append(ru.Marks, mv)
		}
	})
}
