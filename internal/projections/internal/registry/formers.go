package registry

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/rules"
)

// Former rules are compiled again from the file that registered them, which the
// registry keeps: a worker that takes back what a rule wrote must know what that was.

// textName names a rule file in the registry by what it says: the same text is always under the same key.
func textName(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:32]
}

// ReadFormers compiles the registered rules that are not in force any more, or are about to retire.
func ReadFormers(ctx context.Context, rd *table.Reader, set *rules.Set, m Matched, known map[string]state.Rule) ([]*plan.Binding, error) {
	ids := m.formers(known)
	compiled, err := compileRegistered(ctx, rd, set.Kinds(), known, ids)
	if err != nil {
		return nil, err
	}
	var formers []*plan.Binding
	for _, id := range ids {
		r, item := compiled[id], known[id]
		if r == nil && item.Cleaned {
			continue // a later version may not know all that an earlier one did
		}
		if r == nil {
			return nil, &table.SetupError{
				Problem: fmt.Sprintf("what rule %s was cannot be told: the state table does not hold the file that it came from", item.Name),
				Remedy:  "restore the rows of the registry from a backup, or start over (docs/state-table.md)",
			}
		}
		formers = append(formers, newFormer(r, id, item))
	}
	return formers, nil
}

func newFormer(r *rules.Rule, id string, item state.Rule) *plan.Binding {
	b := plan.NewFormer(r, id)
	if r.ByUnique {
		b.Locator = cmp.Or(item.Locator, r.Target.Name)
	}
	b.Retired.Store(item.State == state.Retired)
	b.Cleaned.Store(item.Cleaned)
	return b
}

// compileRegistered compiles registered rules from the files that are kept of
// them. One whose file is not kept, or cannot be read by this version, is missing.
func compileRegistered(ctx context.Context, rd *table.Reader, kinds []rules.Kind, known map[string]state.Rule,
	ids []string) (map[string]*rules.Rule, error) {
	keys := make([]table.Key, len(ids))
	for i, id := range ids {
		keys[i] = state.FileKey(known[id].File)
	}
	rows, err := rd.ReadState(ctx, "reading former rule files", keys)
	if err != nil {
		return nil, err
	}
	sets := map[table.Key]*rules.Set{}
	for key, r := range rows {
		set, err := rules.LoadFormer("former rules", []byte(state.FileText(r)), kinds)
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
		if set := sets[state.FileKey(known[id].File)]; set != nil {
			compiled[id] = ruleOf(set, known[id])
		}
	}
	return compiled, nil
}

// ruleOf is the registered rule in the set that it came from: a file has no two
// rules that mean the same, and a name may have changed since.
func ruleOf(set *rules.Set, item state.Rule) *rules.Rule {
	i := slices.IndexFunc(set.Rules, func(r *rules.Rule) bool { return r.Fingerprint == item.Fingerprint })
	if i < 0 {
		i = slices.IndexFunc(set.Rules, func(r *rules.Rule) bool { return r.Name == item.Name })
	}
	if i < 0 {
		return nil
	}
	return set.Rules[i]
}
