package registry

import (
	"fmt"
	"maps"
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
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
	left := slices.DeleteFunc(slices.Sorted(maps.Keys(known)), func(id string) bool { return !known[id].InForce() })
	for _, byName := range []bool{true, false} {
		for _, r := range set.Rules {
			i := slices.IndexFunc(left, func(id string) bool {
				return known[id].Fingerprint == r.Fingerprint && (!byName || known[id].Name == r.Name)
			})
			if m.IDs[r] != "" || i < 0 {
				continue
			}
			m.IDs[r] = left[i]
			left = slices.Delete(left, i, i+1)
			if !byName {
				m.renamed = append(m.renamed, r)
			}
		}
	}
	m.Fresh = slices.DeleteFunc(slices.Clone(set.Rules), func(r *rules.Rule) bool { return m.IDs[r] != "" })
	m.Retire = left
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

// FreeID returns an id that is not taken, and takes it: a digest of the rule's name. So a new state table gives the same
// rules the same ids. If the id is taken or begins with a hyphen, FreeID digests the name with a number behind it. The
// id is short because the name of every stamp holds it. It begins with no hyphen because commands take it as an argument.
func FreeID(name string, taken map[string]bool) string {
	for n := 1; ; n++ {
		text := name
		if n > 1 {
			text = fmt.Sprintf("%s-%d", name, n)
		}
		if id := stamp.ShortDigest(idDigitsMin+n/triesWithEachLength, change.String(text)); !taken[id] && id[0] != '-' {
			taken[id] = true
			return id
		}
	}
}

const (
	idDigitsMin         = 2
	triesWithEachLength = 32
)

// FreeName takes a name that is not taken yet: this one, or the first with a number behind it.
func FreeName(name string, taken map[string]bool) string {
	free := name
	for n := 2; taken[free]; n++ {
		free = fmt.Sprintf("%s-%d", name, n)
	}
	taken[free] = true
	return free
}
