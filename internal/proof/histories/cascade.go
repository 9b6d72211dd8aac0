package histories

import (
	"math/rand/v2"
	"slices"
	"strings"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/proof/adversary"
	"github.com/dynamill/dynamill/internal/proof/oracle"
	"github.com/dynamill/dynamill/internal/rules"
)

// newChronicle is the chronicle of all rules that are ever in force.
func (l *life) newChronicle() *oracle.Chronicle {
	sets := []*rules.Set{l.Population.Set}
	if l.FirstRules != "" && !l.Changing {
		if set, err := rules.Load("first rules", []byte(l.FirstRules), projections.Kinds); err == nil &&
			set.CheckKeys(l.Population.PartitionKind, l.Population.SortKind) == nil {
			sets = append(sets, set)
		}
	}
	return oracle.NewChronicle([2]change.Kind{l.Population.PartitionKind, l.Population.SortKind}, append(sets, l.former...)...)
}

// changed tells the chronicle of a change of the table.
func (l *life) changed(table string, before, after map[string]ddb.AttributeValue, streamed bool) {
	if table != tableName || l.chronicle.Empty() {
		return
	}
	was, is := attributes.ItemFromTable(before), attributes.ItemFromTable(after)
	key := l.Population.Key(was)
	if was == nil {
		key = l.Population.Key(is)
	}
	l.chronicle.Changed(key, was, is, streamed)
}

// byKey are items by their keys.
func (l *life) byKey(items []change.Item) map[change.Key]change.Item {
	all := map[change.Key]change.Item{}
	for _, it := range items {
		all[l.Population.Key(it)] = it
	}
	return all
}

// judgeCascade says whether a worker deleted an item of the application's that no deleted parent takes along (promises 8 and 11).
func (l *life) judgeCascade(w *adversary.Worker, key change.Key, before change.Item) {
	present, err := l.app.present()
	if err != nil {
		l.problem("%v", err)
	}
	if why := l.chronicle.MayDelete(key, before, l.byKey(present), l.knowsHolder, l.isMarked); why != "" {
		l.problem("%s deletes %s, which it did not make: %s: %s", w, key, why, told(before))
	}
}

// knowsHolder reports whether a locator says that an item has a unique value, or a mark that it had it when it was deleted: no child goes
// once it has it again. So it does if a new rule has not seen all items, as that must wait until it has.
func (l *life) knowsHolder(r *rules.Rule, value string, holder change.Key) bool {
	rows, err := items(l.crew.Sim, stateTableName)
	if err != nil || isNew(r, rows) {
		return true
	}
	escaped := strings.NewReplacer("%", "%25", "/", "%2F").Replace(value)
	return slices.ContainsFunc(rows, func(row change.Item) bool {
		pk := row["pk"].Text()
		names := row["items"]
		if strings.HasPrefix(pk, "parent/"+oracle.RuleID(r.Name)+"/") {
			names = row["former"]
		} else if !strings.HasPrefix(pk, "locator/") {
			return false
		}
		return (strings.HasSuffix(pk, "/"+escaped) || strings.Contains(pk, "~")) &&
			slices.ContainsFunc(names.List(), func(v change.Value) bool { return v.Text() == holder.String() })
	})
}

// isMarked reports whether the state table says that a parent was deleted, under this rule or another one.
func (l *life) isMarked(r *rules.Rule, parent string) bool {
	rows, err := items(l.crew.Sim, stateTableName)
	if err != nil {
		return true
	}
	if r.ByUnique {
		parent = strings.NewReplacer("%", "%25", "/", "%2F").Replace(parent)
	}
	return slices.ContainsFunc(rows, func(row change.Item) bool {
		pk := row["pk"].Text()
		return strings.HasPrefix(pk, "parent/") && (strings.HasSuffix(pk, "/"+parent) || strings.Contains(pk, "~")) && row["deleted"].Bool()
	})
}

// isNew reports whether a rule is registered, and was never live.
func isNew(r *rules.Rule, rows []change.Item) bool {
	found := false
	for _, row := range rows {
		if row["fingerprint"].Text() == r.Fingerprint {
			if found = true; row["state"].Text() != "seeding" {
				return false
			}
		}
	}
	return found
}

// outliving says which children outlive their parents' deletion (promise 11). Where records or the state table were lost, it is open
// what became of them, and so it is under a rule that was added while parents were deleted.
func (l *life) outliving(present []change.Item) {
	if l.gap || l.startsOver || l.Changing || l.chronicle.Empty() {
		return
	}
	sure := func(r *rules.Rule) bool { return slices.Contains(l.Population.Set.Rules, r) }
	if l.FirstRules != "" {
		first, err := rules.Load("first rules", []byte(l.FirstRules), projections.Kinds)
		if err != nil {
			return
		}
		sure = func(r *rules.Rule) bool {
			return slices.Contains(l.Population.Set.Rules, r) &&
				slices.ContainsFunc(first.Rules, func(f *rules.Rule) bool { return f.Fingerprint == r.Fingerprint })
		}
	}
	// Where the key of a record that cannot be read does not tell that its item was a parent, nothing does.
	told := func(r *rules.Rule) bool {
		return l.crew.Counts[adversary.Unreadable] == 0 || !r.ByUnique && len(r.Source.Equals) == 0
	}
	for _, d := range l.chronicle.Outliving(l.byKey(present), func(r *rules.Rule) bool { return sure(r) && told(r) }) {
		l.problem("outlives its parent: %v", d)
	}
}

// relativesMax is how many steps are added about parents and children where rules delete.
const relativesMax = 40

// drawCascades adds steps by which parents come, are deleted, expire and come again, and children come early and late.
func (h *History) drawCascades() {
	r := rand.New(rand.NewPCG(h.Seed, 0x6f727068616e73))
	for range r.IntN(relativesMax) {
		it, parent, ok := h.Population.Relative(r)
		if !ok {
			return
		}
		s := Step{Kind: Put, Items: []change.Item{it}, Pick: r.Uint64(), Turns: drawTurns(r)}
		switch x := r.IntN(10); {
		case parent && x < 5:
			s.Kind = Delete
		case parent && x == 5:
			s.Kind = Expire
		case !parent && x == 0:
			s.Kind = Update
		}
		if at := h.insert(r, 0, s); at < h.Old {
			h.Steps[at].Turns = 0
		}
	}
}
