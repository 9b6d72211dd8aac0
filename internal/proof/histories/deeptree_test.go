package histories

import (
	"slices"
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/rules"
)

// TestDrawnHistoriesHaveDeepTrees looks for chains of more than 64 levels, and for cycles that one transaction cannot park.
func TestDrawnHistoriesHaveDeepTrees(t *testing.T) {
	deep, cycles := 0, 0
	for seed := uint64(0); seed < 1500 && (deep == 0 || cycles == 0); seed++ {
		h := Draw(seed)
		for _, s := range h.Steps {
			if s.Kind != Transact || len(s.Items) < deepTreeMin {
				continue
			}
			switch levels, closed := longest(h, s.Items); {
			case closed && levels > 49:
				cycles++
			case !closed && levels > 64:
				deep++
			}
		}
	}
	if deep == 0 || cycles == 0 {
		t.Errorf("%d deep chains and %d long cycles", deep, cycles)
	}
}

// longest is how many items the longest way up visits under any tree of the rules, and whether it comes back to where it began.
func longest(h *History, items []change.Item) (levels int, closed bool) {
	byKey := map[change.Key]change.Item{}
	for _, it := range items {
		byKey[h.Population.Key(it)] = it
	}
	trees := slices.DeleteFunc(slices.Clone(h.Population.Set.Rules), func(r *rules.Rule) bool {
		_, nests := r.Form.(rules.Nester)
		return !nests
	})
	for _, rule := range trees {
		for first := range byKey {
			n := 0
			for key := first; byKey[key] != nil && (n == 0 || key != first); n++ {
				m, _ := h.Population.Set.Identify(key, byKey[key])
				parent, refers, err := rule.JoinedKey(&m, byKey[key])
				if m.Entity != rule.Source || err != nil || !refers {
					parent = change.Key{}
				}
				if key = parent; key == first {
					closed = true
				}
			}
			levels = max(levels, n)
		}
	}
	return levels, closed
}
