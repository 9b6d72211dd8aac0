package projections

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
	"github.com/dynamill/dynamill/projections/internal/plan"
	"github.com/dynamill/dynamill/rules"
)

// Former rules are compiled again from the file that registered them, which the
// registry keeps: a worker that takes back what a rule wrote must know what that was.

// textName names a rule file in the registry by what it says.
func textName(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:32]
}

func textKey(name string) stateKey { return stateKey{registryPartition, registryFile + name} }

// textWrite keeps a rule file. The same text is always under the same key.
func (e *Engine) textWrite(set *rules.Set) ddb.TransactWriteItem {
	item := textKey(textName(set.Text())).attributes()
	item["text"] = textValue(set.Text())
	return ddb.TransactWriteItem{Put: &ddb.Put{TableName: &e.stateTable, Item: item}}
}

// readFormers compiles the registered rules that are not in force any more, or are about to retire.
func (rd *reader) readFormers(ctx context.Context, known map[string]row, retire []string) ([]*plan.Binding, error) {
	ids := slices.DeleteFunc(slices.Sorted(maps.Keys(known)), func(id string) bool {
		return inForce(known[id]) && !slices.Contains(retire, id)
	})
	compiled, err := rd.compileRegistered(ctx, known, ids)
	if err != nil {
		return nil, err
	}
	var formers []*plan.Binding
	for _, id := range ids {
		r, item := compiled[id], known[id]
		if r == nil && item["cleaned"] != nil {
			continue // a later version may not know all that an earlier one did
		}
		if r == nil {
			return nil, &SetupError{
				Problem: fmt.Sprintf("what rule %s was cannot be told: the state table does not hold the file that it came from", textOf(item["name"])),
				Remedy:  "start `dynamill run` once with the rule file that is in force, so that it is kept; then change it",
			}
		}
		formers = append(formers, newFormer(r, id, item))
	}
	return formers, nil
}

func newFormer(r *rules.Rule, id string, item row) *plan.Binding {
	b := plan.NewFormer(r, id)
	if r.ByUnique {
		b.Locator = cmp.Or(textOf(item["locator"]), r.Target.Name)
	}
	b.Retired.Store(textOf(item["state"]) == stateRetired)
	b.Cleaned.Store(item["cleaned"] != nil)
	return b
}

// compileRegistered compiles registered rules from the files that are kept of
// them. One whose file is not kept, or cannot be read by this version, is missing.
func (rd *reader) compileRegistered(ctx context.Context, known map[string]row, ids []string) (map[string]*rules.Rule, error) {
	var keys []stateKey
	for _, id := range ids {
		if name := textOf(known[id]["file"]); name != "" {
			keys = append(keys, textKey(name))
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	rows, err := rd.readState(ctx, "reading former rule files", keys)
	if err != nil {
		return nil, err
	}
	sets := map[stateKey]*rules.Set{}
	for key, r := range rows {
		set, err := rules.LoadFormer("former rules", []byte(textOf(r["text"])), Kinds)
		if err == nil {
			err = rd.checkKinds(set)
		}
		if err == nil {
			sets[key] = set
		}
	}
	compiled := map[string]*rules.Rule{}
	for _, id := range ids {
		if set := sets[textKey(textOf(known[id]["file"]))]; set != nil {
			compiled[id] = ruleOf(set, known[id])
		}
	}
	return compiled, nil
}

// checkKinds tells a former set how the table's keys are written.
func (rd *reader) checkKinds(set *rules.Set) error {
	kind := func(number bool) change.Kind {
		if number {
			return change.KindNumber
		}
		return change.KindString
	}
	sort := change.KindAbsent
	if set.Table.SortKey != "" {
		sort = kind(rd.sortN)
	}
	return set.CheckKeys(kind(rd.partitionN), sort)
}

// ruleOf is the registered rule in the set that it came from: a file has no two
// rules that mean the same, and a name may have changed since.
func ruleOf(set *rules.Set, item row) *rules.Rule {
	for _, same := range []func(*rules.Rule) bool{
		func(r *rules.Rule) bool { return r.Fingerprint == textOf(item["fingerprint"]) },
		func(r *rules.Rule) bool { return r.Name == textOf(item["name"]) },
	} {
		if i := slices.IndexFunc(set.Rules, same); i >= 0 {
			return set.Rules[i]
		}
	}
	return nil
}
