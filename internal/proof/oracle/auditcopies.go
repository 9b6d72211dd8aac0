package oracle

import (
	"time"

	"github.com/dynamill/dynamill/change"
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
				families[key] = &family{rule: id}
			}
			return families[key]
		}
		for _, key := range sortedKeys(a.items.actual) {
			item := a.items.actual[key]
			m, ok := a.set.Identify(key, item)
			if !ok {
				continue
			}
			if m.Entity == rule.Source {
				at(key).alive = true
			}
			if m.Entity != rule.Target {
				continue
			}
			parent, refers, err := rule.ParentKey(&m, item)
			if err != nil || !refers {
				continue
			}
			f := at(parent)
			f.children = true
			f.seen = max(f.seen, seen(item[stampPrefix+id]))
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

// family is a parent under one copy rule, with its children.
type family struct {
	rule            string // its id
	alive, children bool
	seen            string // the highest position that a child's stamp tells of
}

// seen is the position in a stamp's version; "" if it was written without one.
func seen(stamp change.Value) string {
	s, _ := ReadStamp(stamp.Text())
	return s.place
}

// positions checks that no parent's position is behind what its children tell
// of, and that none expires but that of a deleted parent without children.
func (a *audit) positions(families map[change.Key]*family) {
	for key, f := range families {
		row, ok := a.rows[key]
		_, position, _, _ := cutVersion(row["a"].Text())
		if f.seen != "" && position < f.seen {
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
		a.version(key)
		f := families[key]
		if a.rows[key]["ttl"].Kind() != change.KindAbsent && (f == nil || !f.alive && !f.children) {
			a.expires(key, tombstoneDays*24*time.Hour)
		}
	}
}
