package histories

import (
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/dynamill/dynamill/change"
)

// A deep tree of a history is a chain of about as many levels as a tree can have, or a cycle of so many items that it takes several
// transactions to park them. One history in a few has one, for time's sake.
const (
	deepTreeOdds             = 8
	deepTreeMin, deepTreeMax = 60, 72
)

// drawDeepTree adds a deep chain or a long cycle. Later one of its items moves to where another one of them is, and may move back.
func (h *History) drawDeepTree() {
	r := rand.New(rand.NewPCG(h.Seed, 0x6465657074726565))
	if r.IntN(deepTreeOdds) > 0 || !h.Population.HasTree() {
		return
	}
	items, by := h.Population.Chain(r, deepTreeMin+r.IntN(deepTreeMax-deepTreeMin+1), r.IntN(2) == 0)
	if items == nil {
		return
	}
	back, other := items[r.IntN(len(items))], items[r.IntN(len(items))]
	moved := maps.Clone(back)
	if moved[by] = other[by]; moved[by].Kind() == change.KindAbsent {
		delete(moved, by)
	}
	steps := []Step{
		{Kind: Transact, Items: slices.Clone(items)}, {Kind: Put, Items: []change.Item{moved}}, {Kind: Put, Items: []change.Item{back}},
	}
	r.Shuffle(len(items), func(i, j int) { all := steps[0].Items; all[i], all[j] = all[j], all[i] })
	at := -1
	for _, s := range steps[:2+r.IntN(2)] {
		s.Turns, s.Pick = drawTurns(r), r.Uint64()
		if at = h.insert(r, at+1, s); at < h.Old {
			h.Steps[at].Turns = 0
		}
	}
}
