package plan

import (
	"maps"
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
)

// A move that is too large for one transaction goes in steps. Each leaves entry, sums and made items in agreement, under the old
// position; the last sets the position. After a crash the item's record finds the entry half way, and resumes.

// Moves reports whether the next transaction moves what the item causes under a key.
func (mv *Move) Moves(k effects.Key) bool { return mv.Step == nil || mv.Step[k] }

// After is the effect in force under a key after the next transaction; of no kind: none.
func (mv *Move) After(k effects.Key) effects.Effect {
	switch {
	case !mv.Moves(k):
		return mv.Old[k]
	case mv.Apart(k):
		return effects.Effect{}
	}
	return mv.New[k]
}

// Apart reports whether no number holds the difference of two contributions to one aggregate: they take two transactions.
func (mv *Move) Apart(k effects.Key) bool {
	old, new := mv.Old[k], mv.New[k]
	if old.Kind != effects.Contribution || new.Kind != effects.Contribution || old.Group != new.Group || old.Per != new.Per {
		return false
	}
	_, err := new.Amount.Sub(old.Amount)
	return err != nil
}

// Next is all effects in force after the next transaction.
func (mv *Move) Next() effects.ByKey {
	if mv.Step == nil {
		return mv.New
	}
	after := effects.ByKey{}
	for _, k := range mv.Keys() {
		if f := mv.After(k); f.Kind != 0 {
			after[k] = f
		}
	}
	return after
}

// Changing are the keys under which the move changes anything.
func (mv *Move) Changing() []effects.Key {
	return slices.DeleteFunc(mv.Keys(), func(k effects.Key) bool {
		_, restored := mv.Restore[k]
		return !restored && mv.Old[k].Same(mv.New[k])
	})
}

// At is the position that the next transaction gives the entry, and how often the item is rederived there: a step keeps the entry's.
func (mv *Move) At(epoch int) (stamp.Version, int64) {
	if mv.Step == nil {
		return mv.To, mv.Rederived
	}
	if mv.Entry == nil {
		return stamp.VersionAt(epoch, change.Position{}), 1
	}
	return mv.Entry.At.UnderEpoch(epoch), mv.Entry.Rederived + 1
}

// Version is the version of a write that goes with the move's ledger entry.
func (mv *Move) Version() stamp.Version {
	if at, rederived := mv.At(mv.To.RulesEpoch()); rederived > 0 {
		return at.Rederived(rederived)
	}
	return mv.To
}

// Advance starts the rest of the move from the entry that the last transaction wrote; false if nothing is left.
func (mv *Move) Advance(epoch int) bool {
	if mv.Step == nil {
		return false
	}
	at, rederived := mv.At(epoch)
	after := mv.Next()
	e := &Entry{At: at, Rederived: rederived, Effects: after}
	for _, g := range mv.Due {
		e.Due = append(e.Due, g.String())
	}
	restore := maps.Clone(mv.Restore)
	maps.DeleteFunc(restore, func(k effects.Key, _ change.Key) bool { return mv.Step[k] })
	mv.Entry, mv.Old, mv.Restore, mv.Step, mv.Shift, mv.Consolidated = e, after, restore, nil, 0, false
	mv.StepMax *= 2 // steps became small to find an effect that was refused: this one had none
	if mv.FromItem && !mv.Raised {
		mv.To, mv.Rederived = at, rederived+1
	}
	return true
}
