package registry

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/rules"
)

// Former rules are compiled again from the file that registered them, which the
// registry keeps: a worker that takes back what a rule wrote must know what that was.

// textName names a rule file in the registry by what it says.
func textName(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:32]
}

// textWrite keeps a rule file. The same text is always under the same key.
func textWrite(rd *table.Reader, set *rules.Set) ddb.TransactWriteItem {
	return rd.PutPart(state.FileRow(textName(set.Text()), set.Text()), "", table.NewExpression())
}

// ReadFormers compiles the registered rules that are not in force any more, or are about to retire.
func ReadFormers(ctx context.Context, rd *table.Reader, kinds []rules.Kind, known map[string]state.Rule, retire []string) ([]*plan.Binding,
	error) {
	ids := slices.DeleteFunc(slices.Sorted(maps.Keys(known)), func(id string) bool {
		return known[id].InForce() && !slices.Contains(retire, id)
	})
	compiled, err := compileRegistered(ctx, rd, kinds, known, ids)
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
				Remedy:  "start `dynamill run` once with the rule file that is in force, so that it is kept; then change it",
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
	var keys []table.Key
	for _, id := range ids {
		if name := known[id].File; name != "" {
			keys = append(keys, state.FileKey(name))
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	rows, err := rd.ReadState(ctx, "reading former rule files", keys)
	if err != nil {
		return nil, err
	}
	sets := map[table.Key]*rules.Set{}
	for key, r := range rows {
		set, err := rules.LoadFormer("former rules", []byte(state.FileText(r)), kinds)
		if err == nil {
			err = checkKinds(rd, set)
		}
		if err == nil {
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

// checkKinds tells a former set how the table's keys are written.
func checkKinds(rd *table.Reader, set *rules.Set) error {
	kind := func(number bool) change.Kind {
		if number {
			return change.KindNumber
		}
		return change.KindString
	}
	sort := change.KindAbsent
	if set.Table.SortKey != "" {
		sort = kind(rd.SortN)
	}
	return set.CheckKeys(kind(rd.PartitionN), sort)
}

// ruleOf is the registered rule in the set that it came from: a file has no two
// rules that mean the same, and a name may have changed since.
func ruleOf(set *rules.Set, item state.Rule) *rules.Rule {
	for _, same := range []func(*rules.Rule) bool{
		func(r *rules.Rule) bool { return r.Fingerprint == item.Fingerprint },
		func(r *rules.Rule) bool { return r.Name == item.Name },
	} {
		if i := slices.IndexFunc(set.Rules, same); i >= 0 {
			return set.Rules[i]
		}
	}
	return nil
}
