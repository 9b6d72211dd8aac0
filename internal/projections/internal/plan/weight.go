package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/dynamill/dynamill/internal/rules"
)

// effectBytesMax is how many bytes all effects of one item may take. Its ledger entry has up to 400 KB (DynamoDB developer guide,
// "Service quotas"): the effects, and marks of the aggregates that are due, which may be those of the effects before and after a move.
const effectBytesMax = 128 << 10

// lightEffects is a number of effects that never take more: a group and what an effect is for are parts of keys, at most 3 KB together.
const lightEffects = 40

// bound parks the item under rules with `each`, the heaviest first, until its ledger entry has room for the effects of all others.
func (fs Effects) bound(bs *Bindings) {
	if len(fs) <= lightEffects {
		return
	}
	total, of := 0, map[string]int{}
	for k, f := range fs {
		size := len(k.ID) + len(k.For) + len(f.String())
		total += size
		if b := bs.ByID(k.ID); b != nil && b.Rule.Each.Given() {
			of[k.ID] += size
		}
	}
	heaviestFirst := slices.SortedFunc(maps.Keys(of), func(a, b string) int { return cmp.Or(of[b]-of[a], cmp.Compare(a, b)) })
	for _, id := range heaviestFirst {
		if total <= effectBytesMax {
			return
		}
		maps.DeleteFunc(fs, func(k EffectKey, _ Effect) bool { return k.ID == id })
		fs[EffectKey{ID: id}] = ParkedBy(&rules.ItemError{Code: "each.too_large", Reason: fmt.Sprintf(
			"what the elements of %s cause takes %d KB; all rules of an item have %d KB together", bs.ByID(id).Rule.Each.List, of[id]>>10,
			effectBytesMax>>10)})
		total -= of[id]
	}
}
