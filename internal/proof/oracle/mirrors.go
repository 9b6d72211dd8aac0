package oracle

import (
	"maps"
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/rules"
)

// madeAttribute is how the engine marks an item that it makes at a mirror's key: it holds the
// digest of that key, so that a clone under another key does not count as made.
const madeAttribute = "_dm"

// Made reports whether the engine made the item with this key. Any other item
// at a mirror's key is the application's.
func Made(key change.Key, item change.Item) bool {
	return item.Lookup(madeAttribute).Equal(change.String(change.Digest(change.String(key.String()))))
}

// makesAlone reports whether a rule makes its target's items alone: it mirrors.
func makesAlone(rule *rules.Rule) bool { return rule.MakesItems() && !rule.Derives() }

// occupied reports whether an item of another entity, which the engine did not
// make, stands where a mirror item of the rule belongs.
func (t *table) occupied(rule *rules.Rule, key change.Key) bool {
	item, ok := t.right[key]
	if !ok || Made(key, item) {
		return false
	}
	m, ok := t.set.Identify(key, item)
	return !ok || m.Entity != rule.Target
}

// given returns the mirror items that the rule asks for. Where several sources
// give one target, the one with the smallest key wins.
func (t *table) given(rule *rules.Rule) map[change.Key]rules.MadeItem {
	targets := map[change.Key]rules.MadeItem{}
	t.each(rule.Source, func(_ change.Key, m *rules.Match, item change.Item) {
		all, _ := images(rule, m, item)
		for _, mirror := range all {
			if _, taken := targets[mirror.Key]; !taken { // each goes in the order of keys
				targets[mirror.Key] = mirror.MadeItem
			}
		}
	})
	return targets
}

// addItems puts in the mirror items that are not there yet.
func (t *table) addItems(rule *rules.Rule) (added bool) {
	for key, mirror := range t.given(rule) {
		if _, ok := t.right[key]; ok || t.expired[key] {
			continue
		}
		item := maps.Clone(mirror.Attributes)
		if item == nil {
			item = map[string]change.Value{}
		}
		item[t.set.Table.PartitionKey] = keyValue(t.keys[0], key.Partition)
		if t.set.Table.SortKey != "" {
			item[t.set.Table.SortKey] = keyValue(t.keys[1], key.Sort)
		}
		if !fits(item) {
			continue
		}
		item[madeAttribute] = change.String(change.Digest(change.String(key.String())))
		t.right[key] = item
		added = true
	}
	return added
}

func keyValue(kind change.Kind, text string) change.Value {
	if kind == change.KindNumber {
		return change.Number(text)
	}
	return change.String(text)
}

func (t *table) mirrored(rule *rules.Rule) []cell {
	var cells []cell
	for key, mirror := range t.given(rule) {
		if t.occupied(rule, key) {
			continue
		}
		names := slices.Collect(maps.Keys(mirror.Attributes))
		names = append(names, rule.Writes...)
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			cells = append(cells, cell{key: key, attribute: name, want: mirror.Attributes[name]})
		}
	}
	return cells
}

// compareItems returns the mirror items of the rule that are missing.
func (t *table) compareItems(rule *rules.Rule) []Difference {
	var found []Difference
	for key := range t.given(rule) {
		_, ok := t.actual[key]
		if must, right := t.right[key]; right && !ok {
			found = append(found, Difference{Rule: rule.Name, Key: key, Want: change.Map(must)})
		}
	}
	return found
}

// strays returns the items that the engine made and no source asks for.
func (t *table) strays() []Difference {
	asked := t.asked()
	var found []Difference
	for key, item := range t.actual {
		if owner := t.mirrorAt(key); owner != nil && makesAlone(owner) && !asked[key] && Made(key, item) {
			found = append(found, Difference{Rule: owner.Name, Key: key, Got: change.Map(item)})
		}
	}
	return found
}

// asked are the keys of the mirror items that some source asks for.
func (t *table) asked() map[change.Key]bool {
	asked := map[change.Key]bool{}
	for _, rule := range t.rules {
		if !makesAlone(rule) {
			continue
		}
		for key := range t.given(rule) {
			asked[key] = true
		}
	}
	return asked
}

// mirrorAt is the first mirror rule whose items have keys like this one; nil if there is none.
func (t *table) mirrorAt(key change.Key) *rules.Rule {
	i := slices.IndexFunc(t.rules, func(r *rules.Rule) bool { return r.MakesItems() && r.Target.HasKey(key) })
	if i < 0 {
		return nil
	}
	return t.rules[i]
}
