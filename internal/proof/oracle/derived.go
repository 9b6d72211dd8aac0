package oracle

import (
	"maps"
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/rules"
)

// contributed tells of the items of a derived entity: true of those that must be there, because some rule has an item that contributes to
// them. A contribution of 0 does, one whose amount is missing does not. Of an item that a total may have no number for, it tells nothing.
func (t *table) contributed(entity *rules.Entity) (keys, untold map[change.Key]bool) {
	keys, untold = map[change.Key]bool{}, map[change.Key]bool{}
	for _, rule := range entity.Makers {
		if !rule.Derives() {
			continue
		}
		t.each(rule.Source, func(_ change.Key, m *rules.Match, item change.Item) {
			all, _ := shares(rule, m, item)
			for _, c := range all {
				keys[change.ParseKey(c.Group)] = true
			}
		})
		for group, delicate := range t.delicate(rule) {
			untold[change.ParseKey(group)] = untold[change.ParseKey(group)] || delicate
		}
	}
	return keys, untold
}

// deriveItems makes and deletes the items of a rule's derived entity, and gives them what each has.
func (t *table) deriveItems(rule *rules.Rule) (changed bool) {
	wanted, untold := t.contributed(rule.Target)
	for key, item := range t.right {
		if !rule.Target.HasKey(key) || untold[key] {
			continue
		}
		if !wanted[key] {
			delete(t.right, key)
			changed = true
			continue
		}
		whole := maps.Clone(item)
		t.complete(rule.Target, key, whole)
		if !maps.EqualFunc(whole, item, func(v, w change.Value) bool { return v.Equal(w) }) {
			t.right[key], changed = whole, true
		}
	}
	for key := range wanted {
		if _, ok := t.right[key]; ok || t.expired[key] || untold[key] {
			continue
		}
		item := change.Item{t.set.Table.PartitionKey: keyValue(t.keys[0], key.Partition)}
		if t.set.Table.SortKey != "" {
			item[t.set.Table.SortKey] = keyValue(t.keys[1], key.Sort)
		}
		t.complete(rule.Target, key, item)
		t.right[key], changed = item, true
	}
	return changed
}

// complete gives a derived item what each has.
func (t *table) complete(entity *rules.Entity, key change.Key, item change.Item) {
	item[madeAttribute] = change.String(change.Digest(change.String(key.String())))
	for _, eq := range entity.Equals {
		item[eq.Attribute] = eq.Value
	}
	if name := entity.ExpireAttribute; name != "" && item[name].Kind() != change.KindNumber {
		item[name] = change.Number("1") // any time is right
	}
}

// misplaced returns the derived items that are missing, should not be there, or lack what each has.
func (t *table) misplaced() []Difference {
	var found []Difference
	for _, entity := range t.set.Entities {
		if !entity.Derived {
			continue
		}
		owner := entity.Makers[0].Name
		_, untold := t.contributed(entity)
		for key, must := range t.right {
			if _, ok := t.actual[key]; !ok && entity.HasKey(key) && !untold[key] {
				found = append(found, Difference{Rule: owner, Key: key, Want: change.Map(must)})
			}
		}
		for key, is := range t.actual {
			must, ok := t.right[key]
			switch {
			case !entity.HasKey(key), untold[key]:
			case !ok:
				found = append(found, Difference{Rule: owner, Key: key, Got: change.Map(is)})
			default:
				found = append(found, t.incomplete(entity, owner, key, must, is)...)
			}
		}
	}
	return found
}

// incomplete returns what a derived item lacks of what each has.
func (t *table) incomplete(entity *rules.Entity, owner string, key change.Key, must, is change.Item) (found []Difference) {
	whole := change.Item{}
	t.complete(entity, key, whole)
	for _, name := range slices.Sorted(maps.Keys(whole)) {
		if !must[name].Equal(is[name]) {
			found = append(found, Difference{Rule: owner, Key: key, Attribute: name, Want: must[name], Got: is[name]})
		}
	}
	return found
}
