package pack

import (
	"slices"

	"github.com/dynamill/dynamill/internal/projections/internal/plan"
)

// smallMove is a number of effects that always fit, unless families have effects of their
// own among them: each takes at most two actions.
const smallMove = plan.TransactActionsMax/2 - 1

// Fits reports whether one transaction holds the whole move.
func Fits(p *plan.Planner, mv *plan.Move) bool {
	mv.Step = nil
	keys := mv.Keys()
	if slices.ContainsFunc(keys, mv.Apart) || mv.StepMax > 0 && len(mv.Changing()) > mv.StepMax {
		return false
	}
	if len(keys) <= smallMove && !slices.ContainsFunc(keys, func(k plan.EffectKey) bool { return mv.New[k].Kind == plan.OfFamily }) {
		return true
	}
	actions, bytes := weight(p, mv)
	return actions < plan.TransactActionsMax && bytes <= transactBytesMax
}

// Divide has the next transaction move as much as it holds, and at least one effect.
// The move must start from the entry that was found.
func Divide(p *plan.Planner, mv *plan.Move) {
	step := map[plan.EffectKey]bool{}
	actions, bytes := 0, entryBytes
	for _, k := range mv.Changing() {
		mv.Step = map[plan.EffectKey]bool{k: true}
		n, size := weight(p, mv)
		full := actions+n >= plan.TransactActionsMax || bytes+size > transactBytesMax || mv.StepMax > 0 && len(step) == mv.StepMax
		if len(step) > 0 && full {
			continue
		}
		step[k] = true
		actions, bytes = actions+n, bytes+size
	}
	mv.Step = step
}

// weight is about how many actions the next transaction has beside the entry, and how many bytes.
func weight(p *plan.Planner, mv *plan.Move) (actions, bytes int) {
	sums, rest := Difference(p, mv)
	actions = len(sums) + len(rest)
	for _, a := range rest {
		bytes += a.Bytes
		if a.Reads {
			actions += plan.OwnWritesMax - 1
		}
	}
	return actions, bytes
}
