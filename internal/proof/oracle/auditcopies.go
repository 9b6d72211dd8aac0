package oracle

import (
	"strconv"
	"strings"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/rules"
)

// copies compares references and parents' positions.
func (a *audit) copies() {
	references := map[change.Key]wanted{}
	families := map[change.Key]*family{}
	for _, rule := range a.set.Rules {
		if !rule.HasParent() {
			continue
		}
		id := a.names[rule]
		at := func(parent change.Key) *family {
			key := stateKey("parent/"+id+"/"+parent.String(), "position")
			if families[key] == nil {
				families[key] = &family{rule: id, counted: rule.ByUnique}
			}
			return families[key]
		}
		for _, key := range sortedKeys(a.items.actual) {
			item := a.items.actual[key]
			m, ok := a.set.Identify(key, item)
			if !ok {
				continue
			}
			if parent, ok := parentAs(rule, &m, key, item); ok && !rule.Deletes() {
				at(parent).alive = true
			}
			if m.Entity != rule.Target {
				continue
			}
			parent, refers, err := ParentOf(rule, &m, item)
			if err != nil || !refers {
				continue
			}
			if !rule.Deletes() {
				f := at(parent)
				f.children = true
				f.seen = max(f.seen, seen(item[stampPrefix+id]))
			}
			if !rule.Collection {
				reference := stateKey("ref/"+id+"/"+parent.String(), key.String())
				child := change.Value{}
				if reference.Sort != key.String() {
					child = change.String(key.String())
				}
				references[reference] = wanted{id, change.Item{"child": child}}
			}
		}
	}
	a.compare("ref/", references, func(id string, _ change.Item) bool {
		rule := a.ids[id]
		return a.except[DanglingReferences] && rule != nil && rule.HasParent() && !rule.Collection
	})
	for _, key := range a.under("ref/") {
		a.version(key)
	}
	a.positions(families)
}

// parentAs is the parent as which children refer to an item: its key, or the value that it is known by.
func parentAs(rule *rules.Rule, m *rules.Match, key change.Key, item change.Item) (change.Key, bool) {
	if m.Entity != rule.Source || !rule.ByUnique {
		return key, m.Entity == rule.Source
	}
	value, ok, err := rule.Source.UniqueValue(m, item)
	return change.Key{Partition: value}, ok && err == nil
}

// family is a parent under one copy rule, with its children.
type family struct {
	rule            string // its id
	counted         bool   // a unique value is the parent: its changes are counted
	alive, children bool
	seen            string // the highest position that a child's stamp tells of
}

// seen is the position in a stamp's version; "" if it was written without one.
func seen(stamp change.Value) string {
	s, _ := ReadStamp(stamp.Text())
	return s.place
}

// countIn is a count in the form that versions have.
func countIn(text string) int64 {
	n, _, _ := cutNumber(text)
	return n
}

// countOf is a count in a row; 0 if there is none.
func countOf(v change.Value) int64 {
	n, _ := strconv.ParseInt(v.Text(), 10, 64)
	return n
}

// changes checks that a row holds a count of changes.
func (a *audit) changes(key change.Key) {
	if countOf(a.rows[key]["changes"]) < 1 || a.rows[key]["a"].Kind() != change.KindAbsent {
		a.differs("", key, "changes", change.String("a count"), a.rows[key]["changes"])
	}
}

// positions checks that no parent's position is behind what its children tell
// of, and that none expires but that of a deleted parent without children.
func (a *audit) positions(families map[change.Key]*family) {
	for key, f := range families {
		row, ok := a.rows[key]
		_, position, _, _ := cutVersion(row["a"].Text())
		if f.counted {
			if _, seen, _ := strings.Cut(f.seen, "0"); countIn(seen) > countOf(row["changes"]) {
				a.differs(f.rule, key, "changes", change.Number(strconv.FormatInt(countIn(seen), 10)), row["changes"])
			}
		} else if f.seen != "" && position < f.seen {
			a.differs(f.rule, key, "a", change.String(f.seen), row["a"])
		}
		if ok && row["ttl"].Kind() != change.KindAbsent && (f.alive || f.children) && !a.except[ExpiringPositions] {
			a.differs(f.rule, key, "ttl", change.Value{}, row["ttl"])
		}
	}
	for _, key := range a.under("parent/") {
		id := idIn(key.Partition)
		if rule := a.ids[id]; rule == nil || !rule.HasParent() {
			a.differs("", key, "", change.Value{}, change.Map(a.rows[key]))
			continue
		}
		if a.ids[id].ByUnique {
			a.changes(key)
		} else {
			a.version(key)
		}
		if a.ids[id].Deletes() {
			a.mark(key)
			continue
		}
		f := families[key]
		if a.rows[key]["ttl"].Kind() != change.KindAbsent && (f == nil || !f.alive && !f.children) {
			a.expires(key, tombstoneDays*24*time.Hour)
		}
	}
}

// mark checks that the row of a parent under a rule that deletes expires, and says whether the parent was deleted. It says nothing if the
// parent's records tell that it is there again.
func (a *audit) mark(key change.Key) {
	if deleted := a.rows[key]["deleted"]; deleted.Kind() != change.KindAbsent && !deleted.Bool() {
		a.differs("", key, "deleted", change.Bool(true), deleted)
	}
	a.expires(key, tombstoneDays*24*time.Hour)
}
