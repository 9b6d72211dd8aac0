package population

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/rules"
)

// cascadesMax is how many rules are added at most, and cascadeTriesMax how many drafts of one are tried.
const (
	cascadesMax     = 2
	cascadeTriesMax = 12
)

// Cascading returns a population of the same rule file with one or two more rules, by which items of one entity go with those of another;
// the same population if no such rule fits. All else of the file stays.
func (p *Population) Cascading(r *rand.Rand) *Population {
	for range 1 + r.IntN(cascadesMax) {
		for range cascadeTriesMax {
			draft := strings.TrimRight(p.File, "\n") + "\n" + p.cascade(r)
			if more, err := New(p.Name, draft, p.Set.Kinds()); err == nil && more.PartitionKind == p.PartitionKind && more.SortKind == p.SortKind {
				p = more
				break
			}
		}
	}
	return p
}

// cascade = delete-3: { delete: Comment, with: Post, by: { postId: aboutId } }.
func (p *Population) cascade(r *rand.Rand) string {
	if len(p.writes) < 2 {
		return ""
	}
	child, parent := oneOf(r, p.writes), oneOf(r, p.writes)
	holding := func(name string) string { // of the child, an attribute that holds the values of a name of the parent's
		if len(child.slots) > 1 && r.IntN(3) == 0 {
			return oneOf(r, child.slots).name
		}
		if slices.ContainsFunc(child.variables, func(v variable) bool { return v.name == name }) {
			return "its" + title(name)
		}
		return name
	}
	var pairs []string
	pair := func(name string) {
		pairs = append(pairs, fmt.Sprintf("%s: %s", inYAML(named(name)), inYAML(named(holding(name)))))
	}
	if unique := parent.entity.Unique; unique != "" && r.IntN(2) == 0 {
		pair(unique)
	} else {
		for _, v := range parent.variables {
			if !slices.ContainsFunc(child.variables, func(of variable) bool { return of.name == v.name }) {
				pair(v.name)
			}
		}
	}
	by := ""
	if len(pairs) > 0 {
		by = ", by: { " + strings.Join(pairs, ", ") + " }"
	}
	return fmt.Sprintf("  delete-%d: { delete: %s, with: %s%s }\n", len(p.Set.Rules)+1, child.entity.Name, parent.entity.Name, by)
}

// Relative draws an item of an entity that a rule deletes, or with whose items it does; false if no rule deletes any.
func (p *Population) Relative(r *rand.Rand) (it change.Item, parent, ok bool) {
	var all []*rules.Rule
	for _, rule := range p.Set.Rules {
		if rule.Deletes() {
			all = append(all, rule)
		}
	}
	if len(all) == 0 {
		return nil, false, false
	}
	rule := oneOf(r, all)
	if parent = r.IntN(2) == 0; parent {
		return p.kinds[rule.Source.Index].item(r), true, true
	}
	return p.kinds[rule.Target.Index].item(r), false, true
}
