package oracle

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/rules"
)

// FormerRows are rows, and effects in ledger entries, of rules that are not in
// force any more: a worker of the older rules that woke up late leaves them. They are never
// read, and the next sweep takes them away.
const FormerRows Exception = "row of a former rule"

// former is a registered rule that is not in force any more.
type former struct {
	id      string
	rule    *rules.Rule // nil if it cannot be told what it was
	locator string      // "" if it found nothing by a unique value
}

// isFormer reports whether a registered rule is not in force any more.
func isFormer(row change.Item) bool { return strings.HasPrefix(row["state"].Text(), "retir") }

// former checks that every former rule is retired and cleaned up after: no stamp
// of it is left where it could write one, and no row, unless the caller lets that pass.
func (a *audit) former() {
	var formers []former
	for _, key := range a.under("registry") {
		id, ok := strings.CutPrefix(key.Sort, "rule/")
		row := a.rows[key]
		if !ok || !isFormer(row) {
			continue
		}
		if row["state"].Text() != "retired" {
			a.differs("", key, "state", change.String("retired"), row["state"])
		}
		if row["cleaned"].Kind() == change.KindAbsent {
			a.differs("", key, "cleaned", change.Number("1"), change.Value{})
		}
		f := former{id: id, rule: a.compiled(row)}
		if f.rule == nil {
			a.differs("", key, "file", change.String("(a file with the rule)"), row["file"])
		} else if f.rule.ByUnique {
			if f.locator = row["locator"].Text(); f.locator == "" {
				f.locator = soughtBy(f.rule).Name
			}
		}
		formers = append(formers, f)
	}
	for _, f := range formers {
		a.formerStamps(f)
		if a.except[FormerRows] {
			a.passOver(f)
		}
	}
	a.keys = sortedKeys(a.rows)
}

// compiled is a registered rule, compiled from the file that is kept of it.
func (a *audit) compiled(row change.Item) *rules.Rule {
	set := a.formerSet(a.rows[change.Key{Partition: "registry", Sort: "file/" + row["file"].Text()}]["text"].Text())
	if set == nil {
		return nil
	}
	i := slices.IndexFunc(set.Rules, func(r *rules.Rule) bool { return r.Fingerprint == row["fingerprint"].Text() })
	if i < 0 {
		return nil
	}
	return set.Rules[i]
}

// formerSet compiles a file once, however many former rules are from it. It is nil if the file cannot be used.
func (a *audit) formerSet(text string) *rules.Set {
	if set, known := a.loaded[text]; known {
		return set
	}
	a.loaded[text] = nil
	set, err := rules.LoadFormer("former rules", []byte(text), a.set.Kinds())
	if err != nil {
		return nil
	}
	kinds := a.items.keys
	if set.Table.SortKey == "" {
		kinds[1] = change.KindAbsent
	}
	if set.CheckKeys(kinds[0], kinds[1]) == nil {
		a.loaded[text] = set
	}
	return a.loaded[text]
}

// formerStamps finds what a former rule left on items: its stamp is there as long as anything else is.
func (a *audit) formerStamps(f former) {
	for _, key := range sortedKeys(a.items.actual) {
		stamp := a.items.actual[key][stampPrefix+f.id]
		if _, isStamp := ReadStamp(stamp.Text()); isStamp && f.rule != nil && f.rule.Target.HasKey(key) {
			a.found = append(a.found, Difference{Rule: f.rule.Name, Key: key, Attribute: stampPrefix + f.id, Got: stamp})
		}
	}
}

// passOver leaves out of account what a former rule keeps in the state table.
func (a *audit) passOver(f former) {
	dead := func(id string) bool {
		return id == f.id || f.locator != "" && id == "@"+f.locator && !slices.Contains(slices.Collect(maps.Values(a.locators)), f.locator)
	}
	for _, key := range a.keys {
		row := a.rows[key]
		kind, _, _ := strings.Cut(key.Partition, "/")
		switch kind {
		case "sum", "member", "claims", "ref", "parent", "heals", "fold", "lane", "counted":
			if dead(idIn(key.Partition)) {
				delete(a.rows, key)
			}
		case "locator":
			if dead("@" + idIn(key.Partition)) {
				delete(a.rows, key)
			}
		case "parked", "tasks":
			if dead(row["rule"].Text()) {
				delete(a.rows, key)
			}
		case "i":
			a.passOverEffects(key, row, dead)
		}
	}
}

// passOverEffects takes effects and due marks of a former rule out of a ledger entry.
func (a *audit) passOverEffects(key change.Key, row change.Item, dead func(id string) bool) {
	effects := EffectsIn(row)
	before := len(effects)
	maps.DeleteFunc(effects, func(name, _ string) bool { return dead(ruleOf(name)) })
	var due []string
	for _, v := range row["due"].List() {
		if id, _, _ := strings.Cut(v.Text(), " "); !dead(id) {
			due = append(due, v.Text())
		}
	}
	switch {
	case len(effects) == before && len(due) == len(row["due"].List()):
	case len(effects) == 0 && len(due) == 0:
		delete(a.rows, key)
	default:
		row = maps.Clone(row)
		row["e"] = EffectsValue(effects)
		delete(row, "due")
		if len(due) > 0 {
			row["due"] = change.Set(change.KindStringSet, due)
		}
		a.rows[key] = row
	}
}

// files checks that the rule files that the registry keeps are those that their
// names say, and that every rule in force has one.
func (a *audit) files() {
	for _, key := range a.under("registry") {
		if name, ok := strings.CutPrefix(key.Sort, "file/"); ok {
			sum := sha256.Sum256([]byte(a.rows[key]["text"].Text()))
			if want := hex.EncodeToString(sum[:])[:32]; name != want {
				a.differs("", key, "text", change.String("a file named "+name), change.String("a file named "+want))
			}
			continue
		}
		id, ok := strings.CutPrefix(key.Sort, "rule/")
		if file := a.rows[key]["file"]; ok && a.ids[id] != nil && a.compiled(a.rows[key]) == nil {
			a.differs(id, key, "file", change.String("(a file with the rule)"), file)
		}
	}
}
