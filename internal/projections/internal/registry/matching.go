package registry

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/projections"
)

// Matched is how the rules of a file stand to those of the registry.
type Matched struct {
	set          *rules.Set
	known        map[string]state.Rule // by id
	IDs          map[*rules.Rule]string
	New, renamed []*rules.Rule
	Retire       []string // ids of rules in force that are not in the file any more, sorted
}

// Match finds each rule of the file among those in force that mean the same: by name first; any other was renamed.
func Match(set *rules.Set, known map[string]state.Rule) Matched {
	m := Matched{set: set, known: known, IDs: map[*rules.Rule]string{}}
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
	m.New = slices.DeleteFunc(slices.Clone(set.Rules), func(r *rules.Rule) bool { return m.IDs[r] != "" })
	m.Retire = left
	return m
}

// formers are the ids of the rules that are not in force any more, or are about to retire, sorted.
func (m Matched) formers() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(m.known)), func(id string) bool {
		return m.known[id].InForce() && !slices.Contains(m.Retire, id)
	})
}

// Refusal says what of the rules in force the file changes or removes.
func (m Matched) Refusal(stateTable string) *projections.RulesChangedError {
	refused := &projections.RulesChangedError{StateTable: stateTable}
	for _, id := range m.Retire {
		name := m.known[id].Name
		if slices.ContainsFunc(m.New, func(r *rules.Rule) bool { return r.Name == name }) {
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
func (m Matched) spread() (more []*rules.Rule) {
	for _, r := range m.set.Rules {
		if item, ok := m.known[m.IDs[r]]; ok && r.Suffixes() > item.WriteShardsMax {
			more = append(more, r)
		}
	}
	return more
}

// itemRowsMax is how many rows one transaction can check beside the derived item that it writes.
const itemRowsMax = plan.TransactActionsMax - 1

// checkRows refuses write suffixes by which a derived item would have too many rows. The suffixes that its rules had before count, too.
func (m Matched) checkRows() error {
	rows, raised, lowered := map[string]int{}, map[string][]string{}, map[string][]string{} // by entity
	for _, r := range m.set.Rules {
		if !r.Derives() {
			continue
		}
		entity, before := r.Target.Name, m.known[m.IDs[r]].WriteShardsMax
		rows[entity] += max(r.Suffixes(), before)
		switch {
		case r.Suffixes() > max(before, 1):
			raised[entity] = append(raised[entity], r.Name)
		case r.Suffixes() < before:
			lowered[entity] = append(lowered[entity], r.Name)
		}
	}
	for _, entity := range slices.Sorted(maps.Keys(rows)) {
		if rows[entity] <= itemRowsMax {
			continue
		}
		remedy := "remove " + lowered[entity][0] + ", run `dynamill replay`, and add it again: it is then counted anew"
		if len(raised[entity]) > 0 {
			remedy = "lower `write_shards` of " + strings.Join(raised[entity], ", ") + "; or " + remedy
		}
		return &table.SetupError{Remedy: remedy, Problem: fmt.Sprintf("the values of one %s would be spread over %d rows of the state table, "+
			"with the most write_shards that each of its rules ever had; at most %d are allowed, since one transaction checks all of them",
			entity, rows[entity], itemRowsMax)}
	}
	return nil
}

// FreeID takes an id that is not taken: a digest of the name, so that new state tables agree, or of the name and a number. It is short as
// every stamp's name holds it. It begins with no hyphen as commands take it as an argument.
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

const idDigitsMin, triesWithEachLength = 2, 32

// FreeName takes a name that is not taken yet: this one, or the first with a number behind it.
func FreeName(name string, taken map[string]bool) string {
	free := name
	for n := 2; taken[free]; n++ {
		free = fmt.Sprintf("%s-%d", name, n)
	}
	taken[free] = true
	return free
}

// Former rules are compiled again from their files in the registry: a worker that takes back what a rule wrote must know what that was.

// textName names a rule file in the registry by what it says: the same text is always under the same key.
func textName(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:32]
}

// ReadFormers compiles the registered rules that are not in force any more, or are about to retire.
func (m Matched) ReadFormers(ctx context.Context, rd *table.Reader) ([]*plan.Binding, error) {
	ids := m.formers()
	compiled, err := m.compile(ctx, rd, ids)
	if err != nil {
		return nil, err
	}
	var formers []*plan.Binding
	for _, id := range ids {
		r, item := compiled[id], m.known[id]
		if r == nil && item.Cleaned {
			continue // a later version may not know all that an earlier one did
		}
		if r == nil {
			return nil, &table.SetupError{
				Problem: fmt.Sprintf("what rule %s was cannot be told: the state table does not hold the file that it came from", item.Name),
				Remedy:  "restore the rows of the registry from a backup, or start over (docs/state-table.md)",
			}
		}
		b := plan.NewFormer(r, id)
		if r.ByUnique {
			b.Locator = cmp.Or(item.Locator, r.Pointed().Name)
		}
		b.Retired.Store(item.State == state.Retired)
		b.Cleaned.Store(item.Cleaned)
		formers = append(formers, b)
	}
	return formers, nil
}

// compile compiles registered rules from their files. One whose file is missing or unreadable is missing.
func (m Matched) compile(ctx context.Context, rd *table.Reader, ids []string) (map[string]*rules.Rule, error) {
	keys := make([]table.Key, len(ids))
	for i, id := range ids {
		keys[i] = state.FileKey(m.known[id].File)
	}
	rows, err := rd.ReadState(ctx, "reading former rule files", keys)
	if err != nil {
		return nil, err
	}
	sets := map[table.Key]*rules.Set{}
	for key, r := range rows {
		set, err := rules.LoadFormer("former rules", []byte(state.FileText(r)), m.set.Kinds())
		if err != nil {
			continue
		}
		sort := rd.SortKind
		if set.Table.SortKey == "" {
			sort = change.KindAbsent
		}
		if set.CheckKeys(rd.PartitionKind, sort) == nil {
			sets[key] = set
		}
	}
	compiled := map[string]*rules.Rule{}
	for _, id := range ids {
		if set := sets[state.FileKey(m.known[id].File)]; set != nil {
			compiled[id] = ruleOf(set, m.known[id])
		}
	}
	return compiled, nil
}

// ruleOf is the registered rule in its set: no two mean the same, and a name may have changed since.
func ruleOf(set *rules.Set, item state.Rule) *rules.Rule {
	var named *rules.Rule
	for _, r := range set.Rules {
		if r.Fingerprint == item.Fingerprint {
			return r
		}
		if r.Name == item.Name {
			named = r
		}
	}
	return named
}
