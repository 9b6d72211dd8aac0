package oracle

import (
	"maps"
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/rules"
)

// stampPrefix and a rule's id are the name of the attribute in which the engine marks the targets that it writes.
const stampPrefix = "_dm_"

// Drift returns every difference between items, which must be the whole of a
// table with its key attributes, and what set derives from its base items; in
// the order of keys and attributes. It returns nothing for a table that is right.
//
// An item that a rule cannot read has none of the attributes that the rule works out from this item alone.
//
// Not compared is what has no right value: copies on an item whose reference
// to its parent is bad, counts on an item whose unique value is bad, sums that no
// DynamoDB number holds, or that one holds only if their amounts come in the right
// order, and what an item has no room for.
//
// A mirror item is the engine's if the engine made it, as its mark tells: then it
// is there exactly while a source asks for it. Any other item at its key is the
// application's. Of the target's entity, it has the rule's attributes while a source
// asks for them; of another entity, it is left alone.
func Drift(set *rules.Set, items []change.Item, options ...Option) []Difference {
	t := newTable(set, items)
	for _, option := range options {
		option(t)
	}
	t.settle()
	var found []Difference
	for _, rule := range t.rules {
		if makesAlone(rule) {
			found = append(found, t.compareItems(rule)...)
		}
		for _, c := range t.fitting(rule) {
			got, ok := t.actual[c.key]
			if ok && !c.allows(got.Lookup(c.attribute)) {
				found = append(found, Difference{Rule: rule.Name, Key: c.key, Attribute: c.attribute, Want: c.want, Got: got.Lookup(c.attribute)})
			}
		}
	}
	found = append(found, t.strays()...)
	found = append(found, t.joins()...)
	found = append(found, t.misplaced()...)
	slices.SortFunc(found, compareDifferences)
	return found
}

// Option changes what Drift asks for.
type Option func(t *table)

// Expired names mirror items that may be absent although a source asks for them:
// their time to live has passed, and the source has not changed since.
func Expired(keys ...change.Key) Option {
	return func(t *table) {
		for _, key := range keys {
			t.expired[key] = true
		}
	}
}

// cell is one attribute that a rule owns, with the value that it must have.
type cell struct {
	key       change.Key
	attribute string
	want      change.Value
}

func (c cell) allows(got change.Value) bool {
	return normalize(c.want).Equal(normalize(got))
}

// table is the items as they are and, beside them, as they must be.
type table struct {
	set    *rules.Set
	rules  []*rules.Rule // by level
	keys   [2]change.Kind
	actual map[change.Key]change.Item
	right  map[change.Key]change.Item // starts as actual and is corrected until nothing changes

	expired map[change.Key]bool // mirror items that may be absent
}

func newTable(set *rules.Set, items []change.Item) *table {
	t := &table{set: set, actual: map[change.Key]change.Item{}, right: map[change.Key]change.Item{}, expired: map[change.Key]bool{}}
	t.rules = slices.SortedStableFunc(slices.Values(set.Rules), func(a, b *rules.Rule) int { return a.Level - b.Level })
	t.keys = [2]change.Kind{change.KindString, change.KindString}
	for _, item := range items {
		partition, sort := item.Lookup(set.Table.PartitionKey), item.Lookup(set.Table.SortKey)
		key := change.Key{Partition: normalize(partition).Text(), Sort: normalize(sort).Text()}
		t.keys = [2]change.Kind{partition.Kind(), sort.Kind()}
		t.actual[key] = item
		t.right[key] = maps.Clone(item)
	}
	return t
}

// settle applies every rule until nothing changes. Rules never feed each other
// in a circle, so as many rounds as there are rules suffice whatever the start;
// going by level makes it two in most cases.
func (t *table) settle() {
	for range len(t.rules) + 2 {
		changed := false
		for _, rule := range t.rules {
			if makesAlone(rule) && t.addItems(rule) || rule.Derives() && t.deriveItems(rule) {
				changed = true
			}
			for _, c := range t.fitting(rule) {
				item, ok := t.right[c.key]
				if ok && !c.allows(item.Lookup(c.attribute)) {
					assign(item, c.attribute, c.want)
					changed = true
				}
			}
		}
		for _, d := range t.strays() {
			if _, ok := t.right[d.Key]; ok {
				delete(t.right, d.Key)
				changed = true
			}
		}
		if !changed {
			return
		}
	}
}

func assign(item change.Item, attribute string, v change.Value) {
	if v.Kind() == change.KindAbsent {
		delete(item, attribute)
		return
	}
	item[attribute] = v
}

// each ranges over the items of one entity, as they must be, in the order of their keys.
func (t *table) each(entity *rules.Entity, do func(key change.Key, m *rules.Match, item change.Item)) {
	for _, key := range sortedKeys(t.right) {
		item := t.right[key]
		if m, ok := t.set.Identify(key, item); ok && m.Entity == entity {
			do(key, &m, item)
		}
	}
}

func sortedKeys(items map[change.Key]change.Item) []change.Key {
	byText := make(map[string]change.Key, len(items))
	for key := range items {
		byText[key.String()] = key
	}
	keys := make([]change.Key, 0, len(items))
	for _, text := range slices.Sorted(maps.Keys(byText)) {
		keys = append(keys, byText[text])
	}
	return keys
}

// derive returns every attribute that the rule owns, with its value.
func (t *table) derive(rule *rules.Rule) []cell {
	if n, ok := nester(rule); ok {
		return t.nested(rule, n)
	}
	switch {
	case rule.Deletes(): // the chronicle judges it
		return nil
	case rule.HasParent():
		return t.copies(rule)
	case makesAlone(rule):
		return t.mirrored(rule)
	case rule.WritesSource():
		return t.own(rule)
	}
	return t.aggregates(rule)
}

// The most bytes of an item, and how many a rule's stamp may take beside what it writes, and more.
const (
	itemBytesMax = 400 << 10
	stampBytes   = 500
)

// fitting returns what derive does, but for items that have no room for it.
func (t *table) fitting(rule *rules.Rule) []cell {
	var fitting []cell
	cells := t.derive(rule)
	for len(cells) > 0 {
		n := 1
		for n < len(cells) && cells[n].key == cells[0].key {
			n++
		}
		after := maps.Clone(t.right[cells[0].key])
		for _, c := range cells[:n] {
			if after != nil {
				assign(after, c.attribute, c.want)
			}
		}
		if fits(after) {
			fitting = append(fitting, cells[:n]...)
		}
		cells = cells[n:]
	}
	return fitting
}

// fits reports whether an item has room for one more stamp.
func fits(item change.Item) bool {
	size := stampBytes
	for name, v := range item {
		size += len(name) + v.Size()
	}
	return size <= itemBytesMax
}

func (t *table) copies(rule *rules.Rule) []cell {
	var cells []cell
	known := t.known(rule)
	t.each(rule.Target, func(key change.Key, m *rules.Match, item change.Item) {
		parent, refers, err := rule.JoinedKey(m, item)
		if err != nil {
			return
		}
		values := make([]change.Value, len(rule.Attributes))
		if refers {
			source := known[parent.Partition]
			if !rule.ByUnique {
				source = t.image(rule.Source, parent)
			}
			values = rule.Form.(rules.Giver).Given(source)
		}
		for i, c := range rule.Attributes {
			cells = append(cells, cell{key: key, attribute: c.As, want: values[i]})
		}
	})
	return cells
}

// known are the parents of a copy rule by the unique value that they are known by: of several the first by key.
func (t *table) known(rule *rules.Rule) map[string]change.Image {
	parents := map[string]change.Image{}
	t.each(rule.Source, func(_ change.Key, m *rules.Match, item change.Item) {
		value, ok, err := rule.Source.UniqueValue(m, item)
		if _, taken := parents[value]; err == nil && ok && !taken {
			parents[value] = item
		}
	})
	return parents
}

// image returns the item at key if it is there and of the entity; else nil.
func (t *table) image(entity *rules.Entity, key change.Key) change.Image {
	item, ok := t.right[key]
	if !ok {
		return nil
	}
	if m, ok := t.set.Identify(key, item); !ok || m.Entity != entity {
		return nil
	}
	return item
}
