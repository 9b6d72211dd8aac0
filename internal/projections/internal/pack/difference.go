// Package pack says which writes a move of a ledger entry takes beside that entry, divides what is
// too large for one transaction, and spreads moves over transactions. It is pure: the same moves
// give the same transactions in the same order.
package pack

import (
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
)

// Difference says what the next transaction of a move changes beside its entry. The families say what their own effects write.
func Difference(p *plan.Planner, mv *plan.Move) (sums []plan.Sum, rest []plan.Action) {
	keys := mv.Keys()
	for i, k := range keys {
		if mv.Moves(k) {
			added, beside := differenceAt(p, mv, k)
			sums, rest = append(sums, added...), append(rest, beside...)
		}
		if i+1 == len(keys) || keys[i+1].ID != k.ID {
			rest = append(rest, parkings(mv, k)...)
		}
	}
	return sums, rest
}

// differenceAt is the part of a difference that the effect under one key makes, parked records aside.
func differenceAt(p *plan.Planner, mv *plan.Move, k effects.Key) (sums []plan.Sum, rest []plan.Action) {
	b, old, new := p.ByID(k.ID), mv.Old[k], mv.After(k)
	if old.String() != new.String() {
		sums, rest = sumsOf(b, k, old, new), located(p, k, old, new)
	}
	if b == nil {
		return sums, rest
	}
	if actor, ok := b.Family.(plan.Actor); ok {
		rest = append(rest, actor.Differ(p, mv, b, k)...)
	}
	return sums, rest
}

// sumsOf are what a change of an effect adds to aggregates. What a rule that is not in force added goes with it.
func sumsOf(b *plan.Binding, k effects.Key, old, new effects.Effect) (sums []plan.Sum) {
	if b == nil {
		return nil
	}
	was, is := old.Kind == effects.Contribution, new.Kind == effects.Contribution
	if was && is && old.Group == new.Group && old.Per == new.Per {
		delta, _ := new.Amount.Sub(old.Amount) // After takes apart what no number holds
		return []plan.Sum{plan.SumOf(b, k, new, delta, 0)}
	}
	if was {
		sums = append(sums, plan.SumOf(b, k, old, old.Amount.Neg(), -1))
	}
	if is {
		sums = append(sums, plan.SumOf(b, k, new, new.Amount, 1))
	}
	return sums
}

// located are the writes by which an item is found by another unique value. Locators of rules not in force are left.
func located(p *plan.Planner, k effects.Key, old, new effects.Effect) (all []plan.Action) {
	if locator, ok := effects.LocatorIn(k.ID); ok && old.Kind == effects.Located && p.Locates(locator) {
		all = append(all, locatorAction(plan.RemoveLocator, k, old))
	}
	if new.Kind == effects.Located {
		all = append(all, locatorAction(plan.AddLocator, k, new))
	}
	return all
}

func locatorAction(kind plan.ActionKind, k effects.Key, f effects.Effect) plan.Action {
	return plan.Action{Kind: kind, Item: "locator/" + k.ID + "/" + f.Group, Key: k, Effect: f}
}

// parkings set the item aside under the id of a key, or clear that: once for all effects under the id.
func parkings(mv *plan.Move, k effects.Key) []plan.Action {
	old, new := mv.Old.ParkedUnder(k.ID), mv.Next().ParkedUnder(k.ID)
	switch same := old.String() == new.String(); {
	case new.Kind == effects.Parked && (!same || mv.Repark && mv.Step == nil):
		a := plan.ParkAction(k, mv.Key, new)
		a.Again = same
		return []plan.Action{a}
	case new.Kind != effects.Parked && old.Kind == effects.Parked && !mv.Irrevocable[k.ID]:
		return []plan.Action{plan.UnparkAction(k, mv.Key)}
	}
	return nil
}
