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
	Unmatched int
}

// Bare is an item that displays an aggregate although it has no unique value to find it by.
type Bare struct {
	First int
	Last  change.Image
}

// Rollup is a display attribute that is due to be written anew.
type Rollup struct {
	First     int
	Present   bool                        // the target may hold a value, so that even a sum over nothing must be written
	Contested map[change.Key]bool         // targets on which it replaces what the engine had written: counted against the bound
	Asked     bool                        // the sum may have changed: all targets are written, not only those that were seen
	Seen      map[change.Key]change.Image // targets as they were read before the sum was
	Marks     []*Move                     // moves whose due marks can be cleared once this is shown
}

func (ru *Rollup) contest(target change.Key) {
	if ru.Contested == nil {
		ru.Contested = map[change.Key]bool{}
	}
	ru.Contested[target] = true
}

// Heal is a mirror item that somebody else changed, or that came or went.
type Heal struct {
	First     int
	Last      change.Image // nil: deleted
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
		if mv.marked() && slices.Contains(mv.Due, g) {
			ru.Marks = append(ru.Marks, mv)
		}
	})
}
