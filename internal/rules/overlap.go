package rules

import (
	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/rules/internal/templates"
)

// overlapStepsMax bounds the work of comparing all entities of a file.
const overlapStepsMax = 20_000_000

// overlapping decides whether some key fits both shapes, and gives one. It
// looks at the two templates of a key apart and does not ask that a variable
// used twice agrees: it may find an overlap that is none, never miss one. The
// example is "" where the key it would give does not fit.
func overlapping(a, b *shape, budget *int) (example string, overlap bool) {
	partition, ok := templates.CommonText(&a.partition, &b.partition, budget)
	if !ok {
		return "", false
	}
	key := change.Key{Partition: partition}
	if a.hasSort {
		if key.Sort, ok = templates.CommonText(&a.sort, &b.sort, budget); !ok {
			return "", false
		}
	}
	var va, vb [VariablesMax]string
	if !a.match(key, &va) || !b.match(key, &vb) {
		return "", true
	}
	if key.Sort == "" {
		return key.Partition, true
	}
	return key.Partition + " / " + key.Sort, true
}
