package plan

import (
	"maps"
	"slices"

	"github.com/dynamill/dynamill/change"
)

// A move that is too large for one transaction goes in steps. Each step moves
// some of the effects and leaves entry, sums and mirror items in agreement, under the old
// position; the last step sets the position. After a crash the item's record finds
// the entry half way, and resumes from there.

// claimActions is the most actions that one claim takes: the claims, the mirror
// item, and what is parked of it.
const claimActions = 3

// smallMove is a number of effects that always fit, unless mirror items are among
// them: each takes at most two actions.
const smallMove = TransactActionsMax/2 - 1

// moves reports whether the next transaction moves what the item causes under an id.
func (mv *Move) moves(id string) bool { return mv.Step == nil || mv.Step[id] }

// next is the effect in force under an id after the next transaction.
func (mv *Move) next(id string) (Effect, bool) {
	f, ok := mv.New[id]
	switch {
	case !mv.moves(id):
		f, ok = mv.Old[id]
	case mv.apart(id):
		return Effect{}, false
	}
	return f, ok
}

// apart reports whether no DynamoDB number holds the difference between the old
// and the new contribution to one aggregate, so that they take two transactions.
func (mv *Move) apart(id string) bool {
	old, new := mv.Old[id], mv.New[id]
	if old.Kind != Contribution || new.Kind != Contribution || old.Group != new.Group {
		return false
	}
	_, err := new.Amount.Sub(old.Amount)
	return err != nil
}

// Next is all effects in force after the next transaction.
func (mv *Move) Next() Effects {
	if mv.Step == nil {
		return mv.New
	}
	after := Effects{}
	for _, id := range mv.IDs() {
		if f, ok := mv.next(id); ok {
			after[id] = f
		}
	}
	return after
}

// Fits reports whether one transaction holds the whole move.
func (p *Planner) Fits(mv *Move) bool {
	mv.Step = nil
	ids := mv.IDs()
	if slices.ContainsFunc(ids, mv.apart) || mv.StepMax > 0 && len(mv.changing()) > mv.StepMax {
		return false
	}
	if len(ids) <= smallMove && !slices.ContainsFunc(ids, func(id string) bool { return mv.New[id].Kind == Mirrored }) {
		return true
	}
	actions, bytes := p.weight(mv)
	return actions < TransactActionsMax && bytes <= transactBytesMax
}

// Divide has the next transaction move as much as it holds, and at least one effect.
// The move must start from the entry that was found.
func (p *Planner) Divide(mv *Move) {
	step := map[string]bool{}
	actions, bytes := 0, entryBytes
	for _, id := range mv.changing() {
		mv.Step = map[string]bool{id: true}
		n, size := p.weight(mv)
		full := actions+n >= TransactActionsMax || bytes+size > transactBytesMax || mv.StepMax > 0 && len(step) == mv.StepMax
		if len(step) > 0 && full {
			continue
		}
		step[id] = true
		actions, bytes = actions+n, bytes+size
	}
	mv.Step = step
}

// weight is about how many actions the next transaction has beside the entry, and how many bytes.
func (p *Planner) weight(mv *Move) (actions, bytes int) {
	sums, rest := p.Difference(mv)
	actions = len(sums) + len(rest)
	for _, a := range rest {
		bytes += a.Bytes
	}
	for _, t := range p.Claims(mv) {
		actions += claimActions
		bytes += t.Effect.bytes()
	}
	return actions, bytes
}

// bytes is about how large a mirror item is.
func (f Effect) bytes() (n int) {
	for _, v := range f.Content {
		n += v.Size()
	}
	return n
}

// changing are the ids under which the move changes anything.
func (mv *Move) changing() []string {
	return slices.DeleteFunc(mv.IDs(), func(id string) bool {
		_, restored := mv.Restore[id]
		return !restored && mv.Old[id].String() == mv.New[id].String()
	})
}

// Moving are the ids that the next transaction changes.
func (mv *Move) Moving() []string {
	return slices.DeleteFunc(mv.changing(), func(id string) bool { return !mv.moves(id) })
}

// At is the position that the next transaction gives the entry, and how often the item
// is rederived there: a step keeps the entry's own.
func (mv *Move) At(epoch int) (Version, int64) {
	if mv.Step == nil {
		return mv.To, mv.Rederived
	}
	if mv.Entry == nil {
		return VersionAt(epoch, change.Position{}), 1
	}
	return mv.Entry.At.UnderEpoch(epoch), mv.Entry.Rederived + 1
}

// Version is the version of a write that goes with the move's ledger entry.
func (mv *Move) Version() Version {
	if at, rederived := mv.At(mv.To.RulesEpoch()); rederived > 0 {
		return at.Rederived(rederived)
	}
	return mv.To
}

// Advance starts the rest of the move from the entry that the last transaction wrote.
// It reports false if nothing is left to do.
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
	maps.DeleteFunc(restore, func(id string, _ change.Key) bool { return mv.Step[id] })
	mv.Entry, mv.Old, mv.Restore, mv.Step, mv.Shift, mv.Consolidated = e, after, restore, nil, 0, false
	if mv.First < 0 && !mv.Raised {
		mv.To, mv.Rederived = at, rederived+1
	}
	return true
}
