package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/internal/rules/internal/declared"
)

// otherKeyNames reports a file whose entities all have the same keys, and the
// table has others: one of the two is wrong, in one place.
func (c *checker) otherKeyNames() {
	var names []string
	given := 0
	for i := range c.file.Entities {
		key := keyNames(&c.file.Entities[i])
		if len(key) == 0 {
			continue
		}
		if given++; given > 1 && !slices.Equal(key, names) {
			return
		}
		names = key
	}
	table := wordTexts(c.file.Table.Keys)
	if given < 2 || len(table) == 0 || slices.Equal(slices.Sorted(slices.Values(table)), names) {
		return
	}
	c.keysRefused = true
	c.Add(c.file.Table.Keys[0].At, "entity.key",
		fmt.Sprintf("if the table's own key attributes are %s, write `keys: [%s]`; otherwise rename them in the entities",
			strings.Join(names, " and "), strings.Join(names, ", ")),
		"the table's keys are %s here, but the entities have %s", strings.Join(table, " and "), strings.Join(names, " and "))
}

func keyNames(decl *declared.Entity) []string {
	var names []string
	for _, k := range decl.Key {
		names = append(names, k.Name.Text)
	}
	slices.Sort(names)
	return names
}

// templates reads the entity's key, which must be the table's.
func (c *checker) templates(e *Entity) {
	keys := c.file.Table.Keys
	if len(keys) == 0 || len(e.Decl.Key) == 0 || c.keysRefused {
		e.Broken = true
		return
	}
	e.Broken = !c.givesTablesKeys(e)
	given := map[string]declared.Word{}
	for _, k := range e.Decl.Key {
		given[k.Name.Text] = k.Value
	}
	for i, k := range keys {
		w := given[k.Text]
		if w.Node == nil || c.refusePlaceholders(e, w) {
			e.Broken = true
			continue
		}
		t, bad := e.Shape.Parse(w.Text, c.file.Table.Case)
		if bad != nil {
			c.Add(c.Locate(w.Node, bad.Offset, bad.Length), bad.Code, bad.Hint, "%s", bad.Message)
			e.Broken = true
		}
		if i == 0 {
			e.Shape.Partition = t
		} else {
			e.Shape.Sort, e.Shape.HasSort = t, true
		}
	}
	e.Broken = c.refuseUncertain(e) || e.Broken
}

// givesTablesKeys reports whether the key attributes of an entity are the table's. It adds one problem
// if they are not.
func (c *checker) givesTablesKeys(e *Entity) bool {
	name, keys := e.Decl.Name.Text, c.file.Table.Keys
	var foreign []declared.Word
	for _, k := range e.Decl.Key {
		if !c.isKey(k.Name.Text) {
			foreign = append(foreign, k.Name)
		}
	}
	if len(foreign) > 0 {
		c.Add(foreign[0].At, "entity.key", "the table's keys are "+joinWords(keys),
			"the table has no key attribute %s, which the key of %s gives", joinWords(foreign), name)
		return false
	}
	for _, k := range keys {
		if !slices.ContainsFunc(e.Decl.Key, func(f declared.FieldWord) bool { return f.Name.Text == k.Text }) {
			c.Add(e.Decl.Name.At, "entity.key", fmt.Sprintf("add `%s: \"...\"` to its key", k.Text),
				"the key of %s does not give %s, which is a key of the table", name, k.Text)
			return false
		}
	}
	return true
}

func wordTexts(ws []declared.Word) []string {
	texts := make([]string, len(ws))
	for i, w := range ws {
		texts[i] = w.Text
	}
	return texts
}

func joinWords(ws []declared.Word) string { return strings.Join(wordTexts(ws), " and ") }
