package projections

import (
	"fmt"
	"maps"
	"slices"

	"github.com/dynamill/dynamill/rules"
)

// A rule's state in the registry. A rule whose meaning changes is another rule: its
// row retires, and a new one begins. Rows stay for good, and no id is used again.
const (
	stateSeeding  = "seeding" // its aggregates are not shown yet
	stateLive     = "live"
	stateRetiring = "retiring" // not in force any more; what it wrote stands until all that takes its place is shown
	stateRetired  = "retired"  // what it wrote is taken back wherever it is found
)

// inForce reports whether a registered rule is in force.
func inForce(item row) bool {
	state := textOf(item["state"])
	return state == stateSeeding || state == stateLive
}

// matched is how the rules of a file stand to those of the registry.
type matched struct {
	ids            map[*rules.Rule]string
	fresh, renamed []*rules.Rule
	retire         []string // ids of rules in force that are not in the file any more, sorted
}

// matchRules finds each rule of the file among those in force that mean the same. One that
// has its name comes first; any other means that the rule was renamed.
func matchRules(set *rules.Set, known map[string]row) matched {
	m := matched{ids: map[*rules.Rule]string{}}
	used := map[string]bool{}
	inOrder := slices.DeleteFunc(slices.Sorted(maps.Keys(known)), func(id string) bool { return !inForce(known[id]) })
	find := func(r *rules.Rule, named func(row) bool) bool {
		for _, id := range inOrder {
			if item := known[id]; !used[id] && textOf(item["fingerprint"]) == r.Fingerprint && named(item) {
				m.ids[r], used[id] = id, true
				return true
			}
		}
		return false
	}
	var rest []*rules.Rule
	for _, r := range set.Rules {
		if !find(r, func(item row) bool { return textOf(item["name"]) == r.Name }) {
			rest = append(rest, r)
		}
	}
	for _, r := range rest {
		if find(r, func(row) bool { return true }) {
			m.renamed = append(m.renamed, r)
		} else {
			m.fresh = append(m.fresh, r)
		}
	}
	m.retire = slices.DeleteFunc(inOrder, func(id string) bool { return used[id] })
	return m
}

// refusal says what of the rules in force the file changes or removes.
func (m matched) refusal(stateTable string, known map[string]row) *RulesChangedError {
	refused := &RulesChangedError{StateTable: stateTable}
	for _, id := range m.retire {
		name := textOf(known[id]["name"])
		if slices.ContainsFunc(m.fresh, func(r *rules.Rule) bool { return r.Name == name }) {
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
func (m matched) spread(set *rules.Set, known map[string]row) (more []*rules.Rule) {
	for _, r := range set.Rules {
		if item := known[m.ids[r]]; item != nil && int64(r.Suffixes()) > numberOf(item["writeShardsMax"]) {
			more = append(more, r)
		}
	}
	return more
}

// freeName is a name where it is not taken, else with a number behind it.
func freeName(name string, taken map[string]bool) string {
	free := name
	for n := 2; taken[free]; n++ {
		free = fmt.Sprintf("%s-%d", name, n)
	}
	return free
}
