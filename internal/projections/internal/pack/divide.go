package pack

import (
	"slices"

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
	if !addsUp(p, mv, keys) {
		return false
	}
	if len(keys) <= smallMove && !slices.ContainsFunc(keys, func(k plan.EffectKey) bool { return mv.New[k].Kind == plan.OfFamily }) {
		return true
	}
	_, actions, bytes := weight(p, mv)
	return actions < plan.TransactActionsMax && bytes <= transactBytesMax
}

// addsUp reports whether numbers hold what the move adds to each aggregate. Only effects under one rule share one.
func addsUp(p *plan.Planner, mv *plan.Move, keys []plan.EffectKey) bool {
	for i := 1; i < len(keys); i++ {
		if keys[i].ID == keys[i-1].ID {
			sums, _ := Difference(p, mv)
			_, ok := merge(nil, sums)
			return ok
		}
	}
	return true
}

// Divide has the next transaction move as much as it holds, and at least one effect.
// The move must start from the entry that was found.
func Divide(p *plan.Planner, mv *plan.Move) {
	step := map[plan.EffectKey]bool{}
	var sums []plan.Sum
	actions, bytes := 0, entryBytes
	for _, k := range mv.Changing() {
		mv.Step = map[plan.EffectKey]bool{k: true}
		own, n, size := weight(p, mv)
		all, addsUp := merge(sums, own)
		full := !addsUp || actions+n >= plan.TransactActionsMax || bytes+size > transactBytesMax || mv.StepMax > 0 && len(step) == mv.StepMax
		if len(step) > 0 && full {
			continue
		}
		step[k], sums = true, all
		actions, bytes = actions+n, bytes+size
	}
	mv.Step = step
}

// weight is what the next transaction adds to aggregates, and about how many actions it has beside the entry, and how many bytes.
func weight(p *plan.Planner, mv *plan.Move) (sums []plan.Sum, actions, bytes int) {
	sums, rest := Difference(p, mv)
	actions = len(sums) + len(rest)
	for _, a := range rest {
		bytes += a.Bytes
		if a.Reads {
			actions += plan.FamilyWritesMax - 1
		}
	}
	return sums, actions, bytes
}
