package oracle

import (
	"maps"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/rules"
)

// given returns the mirror items that the rule asks for. Where several sources
// give one target, the one with the smallest key wins.
func (t *table) given(rule *rules.Rule) map[change.Key]rules.MirrorItem {
	targets := map[change.Key]rules.MirrorItem{}
	t.each(rule.Source, func(_ change.Key, m *rules.Match, item change.Item) {
		mirror, ok, err := rule.MirrorItem(m, item)
		if err != nil || !ok {
			return
		}
		if _, taken := targets[mirror.Key]; !taken { // each goes in the order of keys
			targets[mirror.Key] = mirror
		}
	})
	return targets
}

// addItems puts in the mirror items that are not there yet.
func (t *table) addItems(rule *rules.Rule) (added bool) {
	for key, mirror := range t.given(rule) {
		if _, ok := t.right[key]; ok {
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
		if _, ok := t.actual[key]; !ok {
			found = append(found, Difference{Rule: rule.Name, Key: key, Want: change.Map(t.right[key])})
		}
	}
	return found
}

// strays returns the items that the engine made and no source asks for. One
// without a stamp was made by the application and is its own business.
func (t *table) strays() []Difference {
	owners := map[*rules.Entity][]*rules.Rule{}
	asked := map[change.Key]bool{}
	for _, rule := range t.rules {
		if rule.Kind != rules.Mirror {
			continue
		}
		owners[rule.Target] = append(owners[rule.Target], rule)
		for key := range t.given(rule) {
			asked[key] = true
		}
	}
	var found []Difference
	for key, item := range t.actual {
		m, ok := t.set.Identify(key, item)
		if ok && len(owners[m.Entity]) > 0 && !asked[key] && t.stampedAs(item) {
			found = append(found, Difference{Rule: owners[m.Entity][0].Name, Key: key, Got: change.Map(item)})
		}
	}
	return found
}

// numbered reports whether an id is a rule's name with a number behind it, as that of a changed rule.
func numbered(id, name string) bool {
	number, ok := strings.CutPrefix(id, name+"-")
	return ok && strings.Trim(number, "0123456789") == ""
}

// stampedAs reports whether the item carries the stamp of a mirror rule. The
// engine calls rules by their names at first; a stamp of another name than the
// other rules of the set is one of a mirror rule before it was renamed.
func (t *table) stampedAs(item change.Item) bool {
	for name := range item {
		id, ok := strings.CutPrefix(name, stampPrefix)
		if !ok {
			continue
		}
		others := slices.ContainsFunc(t.rules, func(r *rules.Rule) bool { return r.Kind != rules.Mirror && (id == r.Name || numbered(id, r.Name)) })
		if !others {
			return true
		}
	}
	return false
}
