package oracle

import (
	"maps"
	"slices"
	"strconv"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/rules"
)

const (
	levelsMax = 64       // of a tree
	cycleMax  = 200      // items of a cycle that are parked, and
	bytesMax  = 64 << 10 // how long their keys may be together
)

// nester is what a rule reads and writes that follows items along themselves; false for every other rule.
func nester(rule *rules.Rule) (rules.Nester, bool) {
	n, ok := rule.Form.(rules.Nester)
	return n, ok
}

// ParentOf is the parent to which an item refers under a rule. An item whose name cannot be read refers to none, with an error.
func ParentOf(rule *rules.Rule, m *rules.Match, item change.Item) (change.Key, bool, error) {
	parent, refers, err := rule.JoinedKey(m, item)
	if n, ok := nester(rule); ok && err == nil {
		if name, _, _ := n.Nested(); name != "" {
			if _, readable := textIn(rule.Source.Value(name, m, item)); !readable {
				return change.Key{}, false, &rules.ItemError{Code: "value.type"}
			}
		}
	}
	return parent, refers, err
}

// textIn is a value as a text; "" for one that is missing. It reports false for a value of a type that has no text.
func textIn(v change.Value) (string, bool) {
	switch v.Kind() {
	case change.KindAbsent, change.KindNull:
		return "", true
	case change.KindString:
		return v.Text(), true
	case change.KindNumber:
		return normalize(v).Text(), true
	case change.KindBool:
		return strconv.FormatBool(v.Bool()), true
	}
	return "", false
}

// climb goes from an item to its root.
type climb struct {
	keys  []change.Key
	cycle bool // the item is in a cycle, of these items
	lost  bool // it never comes to a root, or to an item that cannot be read
	code  string
}

func (t *table) climb(rule *rules.Rule, items map[change.Key]change.Item, key change.Key) (c climb) {
	for at := key; ; {
		item, there := items[at]
		m, ok := t.set.Identify(at, item)
		if !there || !ok || m.Entity != rule.Source {
			return c // the item before is a root
		}
		for i, before := range c.keys {
			if before == at {
				c.lost, c.cycle = true, i == 0
				if c.cycle && len(c.keys) <= cycleMax && lengthOf(c.keys) <= bytesMax {
					c.code = "tree.cycle"
				}
				return c
			}
		}
		c.keys = append(c.keys, at)
		parent, refers, err := ParentOf(rule, &m, item)
		if err != nil {
			c.lost = true
			if at == key {
				c.code = code(err)
			}
			return c
		}
		if !refers {
			break
		}
		at = parent
	}
	return c
}

// lengthOf is how long the texts of keys are together.
func lengthOf(keys []change.Key) (bytes int) {
	for _, key := range keys {
		bytes += len(key.String())
	}
	return bytes
}

// deep is climb with the code of an item that is too deep.
func (t *table) deep(rule *rules.Rule, items map[change.Key]change.Item, key change.Key) climb {
	c := t.climb(rule, items, key)
	if !c.lost && len(c.keys) == levelsMax+1 {
		c.code = "tree.too_deep"
	}
	c.lost = c.lost || len(c.keys) > levelsMax
	return c
}

// nested is what each item shows of its place under a rule, but for what is below an item that has no room for its own: that keeps what
// it shows.
func (t *table) nested(rule *rules.Rule, n rules.Nester) []cell {
	var cells []cell
	full := t.full(rule, t.right)
	for _, c := range t.places(rule, n) {
		if !t.isBelow(rule, t.right, c.key, full) {
			cells = append(cells, c)
		}
	}
	return cells
}

// full are the items that have no room for what they must show.
func (t *table) full(rule *rules.Rule, items map[change.Key]change.Item) map[change.Key]bool {
	full := map[change.Key]bool{}
	n, _ := nester(rule)
	after := map[change.Key]change.Item{}
	for _, c := range t.places(rule, n) {
		if after[c.key] == nil {
			after[c.key] = maps.Clone(items[c.key])
		}
		assign(after[c.key], c.attribute, c.want)
	}
	for key, item := range after {
		full[key] = !fits(item)
	}
	return full
}

// isBelow reports whether one of some items is above an item.
func (t *table) isBelow(rule *rules.Rule, items map[change.Key]change.Item, key change.Key, some map[change.Key]bool) bool {
	return slices.ContainsFunc(t.climb(rule, items, key).keys[1:], func(above change.Key) bool { return some[above] })
}

func (t *table) places(rule *rules.Rule, n rules.Nester) []cell {
	var cells []cell
	name, path, lineage := n.Nested()
	t.each(rule.Target, func(key change.Key, _ *rules.Match, _ change.Item) {
		c := t.deep(rule, t.right, key)
		var text, ids change.Value
		if !c.lost {
			all, complete, list := "", true, []change.Value(nil)
			for i := len(c.keys) - 1; i >= 0; i-- {
				item := t.right[c.keys[i]]
				m, _ := t.set.Identify(c.keys[i], item)
				one := ""
				if name != "" {
					one, _ = textIn(rule.Source.Value(name, &m, item))
				}
				complete = complete && one != ""
				all += "/" + one
				list = append(list, change.String(rule.Source.Value(rule.By[0].Theirs, &m, nil).Text()))
			}
			if complete {
				text = change.String(all)
			}
			ids = change.List(list)
		}
		if path != "" {
			cells = append(cells, cell{key: key, attribute: path, want: text})
		}
		if lineage != "" {
			cells = append(cells, cell{key: key, attribute: lineage, want: ids})
		}
	})
	return cells
}
