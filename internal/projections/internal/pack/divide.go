package pack

import (
	"cmp"
	"slices"

	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
)

// smallMove is a number of effects that always fit, but for families' own: each takes at most two actions.
const smallMove = plan.TransactActionsMax/2 - 1

// Fits reports whether one transaction holds the whole move.
func Fits(p *plan.Planner, mv *plan.Move) bool {
	mv.Step = nil
	keys := mv.Keys()
	if slices.ContainsFunc(keys, mv.Apart) || mv.StepMax > 0 && len(mv.Changing()) > mv.StepMax {
		return false
	}
	acts := func(k effects.Key) bool {
		return mv.New[k].Kind == effects.OfFamily || mv.New[k].Member != nil || mv.Old[k].Member != nil
	}
	if len(keys) <= smallMove && !slices.ContainsFunc(keys, acts) && !shareID(keys) {
		return true
	}
	sums, rest := Difference(p, mv)
	sums, addUp := merge(nil, sums)
	beside, bytes := weight(rest)
	return addUp && len(sums)+beside < plan.TransactActionsMax && bytes <= plan.TransactBytesMax
}

// shareID reports whether two effects are under one rule: only such add to one aggregate.
func shareID(keys []effects.Key) bool {
	for i := 1; i < len(keys); i++ {
		if keys[i].ID == keys[i-1].ID {
			return true
		}
	}
	return false
}

// Divide has the next transaction move as much as it holds, and at least one effect.
// The move must start from the entry that was found.
func Divide(p *plan.Planner, mv *plan.Move) {
	mv.Step = nil
	step := map[effects.Key]bool{}
	var sums []plan.Sum
	actions, bytes := 0, entryBytes
	changing := mv.Changing()
	slices.SortStableFunc(changing, func(k, l effects.Key) int { return cmp.Compare(adds(mv, k), adds(mv, l)) })
	for _, k := range changing {
		if mv.StepMax > 0 && len(step) == mv.StepMax {
			break
		}
		own, rest := differenceAt(p, mv, k)
		all, addUp := merge(sums, own)
		beside, size := weight(rest)
		if mv.Old[k].Kind == effects.Parked || mv.New[k].Kind == effects.Parked {
			beside++ // the parked record
		}
		full := !addUp || len(all)+actions+beside >= plan.TransactActionsMax || bytes+size > plan.TransactBytesMax
		if len(step) > 0 && full {
			continue
		}
		step[k], sums = true, all
		actions, bytes = actions+beside, bytes+size
	}
	mv.Step = step
}

// adds is 0 for an effect that only goes: such a step makes room for the others, in sums and in the entry.
func adds(mv *plan.Move, k effects.Key) int { return min(int(mv.New[k].Kind), 1) }

// weight is about how many actions there are, and how many bytes they carry.
func weight(rest []plan.Action) (actions, bytes int) {
	actions = len(rest)
	for _, a := range rest {
		bytes += a.Bytes
		if a.Reads {
			actions += plan.FamilyWritesMax - 1
		}
	}
	return actions, bytes
}
