package histories

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/proof/population"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/sim/dynamosim/values"
)

const (
	itemBytesMax = 400 << 10
	ballast      = "ballast" // an attribute that no rule cares for
	largeBytes   = 300_000   // of an attribute of which no two have room on one item
)

// drawLarge makes one or two of the items that are put as large as items can
// be, or gives them a large attribute: in few histories, and not more, for time's sake.
func (h *History) drawLarge() {
	r := rand.New(rand.NewPCG(h.Seed, 0x6c61726765))
	if r.IntN(5) > 0 || len(h.Steps) == 0 {
		return
	}
	for range 1 + r.IntN(2) {
		at := r.IntN(len(h.Steps))
		i := slices.IndexFunc(h.Steps[at:], func(s Step) bool { return s.Kind == Put })
		if i < 0 {
			return
		}
		s := &h.Steps[at+i]
		s.Items = []change.Item{swell(r, h.Population, s.Items[0])}
	}
}

// hasLarge reports whether some item of the history is so large that DynamoDB may refuse to write on it.
func (h *History) hasLarge() bool {
	return slices.ContainsFunc(h.Steps, func(s Step) bool {
		return slices.ContainsFunc(s.Items, func(it change.Item) bool { return values.Size(attributes.ItemToTable(it)) >= largeBytes })
	})
}

// swell makes an item large: an attribute that rules read, or all of it.
func swell(r *rand.Rand, p *population.Population, it change.Item) change.Item {
	large := change.Item{ballast: change.String("")}
	for name, v := range it {
		large[name] = v
	}
	m, ok := p.Set.Identify(p.Key(it), it)
	if texts := textsRead(p, m.Entity, it); ok && len(texts) > 0 && r.IntN(2) == 0 {
		large[texts[r.IntN(len(texts))]] = change.String(strings.Repeat("z", largeBytes))
	}
	if r.IntN(3) > 0 {
		spare := []int{0, 0, 1, 2, 20, 60, 100, 150, 300, 1000}
		left := itemBytesMax - spare[r.IntN(len(spare))] - values.Size(attributes.ItemToTable(large))
		large[ballast] = change.String(strings.Repeat("z", max(0, left)))
	}
	return large
}

// textsRead lists the attributes of an item that rules read and that hold texts, the key aside; sorted.
func textsRead(p *population.Population, e *rules.Entity, it change.Item) []string {
	if e == nil {
		return nil
	}
	var names []string
	for _, rule := range slices.Concat(e.Sources, e.Parents, e.Own) {
		for _, name := range rule.Reads {
			if it[name].Kind() == change.KindString && name != p.Set.Table.PartitionKey && name != p.Set.Table.SortKey &&
				!slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}
