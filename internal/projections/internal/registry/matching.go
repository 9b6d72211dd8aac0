package registry

import (
	"fmt"
	"maps"
	"slices"

	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/projections"
)

// Matched is how the rules of a file stand to those of the registry.
type Matched struct {
	IDs            map[*rules.Rule]string
	Fresh, renamed []*rules.Rule
	Retire         []string // ids of rules in force that are not in the file any more, sorted
}

// Match finds each rule of the file among those in force that mean the same. One that
// has its name comes first; any other means that the rule was renamed.
func Match(set *rules.Set, known map[string]state.Rule) Matched {
	m := Matched{IDs: map[*rules.Rule]string{}}
	used := map[string]bool{}
	inOrder := slices.DeleteFunc(slices.Sorted(maps.Keys(known)), func(id string) bool { return !known[id].InForce() })
	find := func(r *rules.Rule, named func(state.Rule) bool) bool {
		for _, id := range inOrder {
			if item := known[id]; !used[id] && item.Fingerprint == r.Fingerprint && named(item) {
				m.IDs[r], used[id] = id, true
				return true
			}
		}
		return false
	}
	var rest []*rules.Rule
	for _, r := range set.Rules {
		if !find(r, func(item state.Rule) bool { return item.Name == r.Name }) {
			rest = append(rest, r)
		}
	}
	for _, r := range rest {
		if find(r, func(state.Rule) bool { return true }) {
			m.renamed = append(m.renamed, r)
		} else {
			m.Fresh = append(m.Fresh, r)
		}
	}
	m.Retire = slices.DeleteFunc(inOrder, func(id string) bool { return used[id] })
	return m
}

// formers are the ids of the rules that are not in force any more, or are about to retire, sorted.
func (m Matched) formers(known map[string]state.Rule) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(known)), func(id string) bool {
		return known[id].InForce() && !slices.Contains(m.Retire, id)
	})
}

// Refusal says what of the rules in force the file changes or removes.
func (m Matched) Refusal(stateTable string, known map[string]state.Rule) *projections.RulesChangedError {
	refused := &projections.RulesChangedError{StateTable: stateTable}
	for _, id := range m.Retire {
		name := known[id].Name
		if slices.ContainsFunc(m.Fresh, func(r *rules.Rule) bool { return r.Name == name }) {
			refused.Changed = append(refused.Changed, name)
		} else {
			refused.Removed = append(refused.Removed, name)
		}
	}
	slices.Sort(refused.Changed)
	slices.Sort(refused.Removed)
	return refused
}

// spread are the rules with more write suffixes than ever before.
func (m Matched) spread(set *rules.Set, known map[string]state.Rule) (more []*rules.Rule) {
	for _, r := range set.Rules {
		if item, ok := known[m.IDs[r]]; ok && r.Suffixes() > item.WriteShardsMax {
			more = append(more, r)
		}
	}
	return more
}

// FreeName is a name where it is not taken, else with a number behind it.
func FreeName(name string, taken map[string]bool) string {
	free := name
	for n := 2; taken[free]; n++ {
		free = fmt.Sprintf("%s-%d", name, n)
	}
	return free
}
