package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/internal/rules/internal/templates"
)

// otherKeyNames reports a file whose entities all have the same keys, and the
// table has others: one of the two is wrong, in one place.
func (c *checker) otherKeyNames() {
	var names []string
	given := 0
	for i := range c.file.entities {
		key := keyNames(&c.file.entities[i])
		if len(key) == 0 {
			continue
		}
		if given++; given > 1 && !slices.Equal(key, names) {
			return
		}
		names = key
	}
	table := wordTexts(c.file.table.keys)
	if given < 2 || len(table) == 0 || slices.Equal(slices.Sorted(slices.Values(table)), names) {
		return
	}
	c.keysRefused = true
	c.Add(c.file.table.keys[0].at, "entity.key",
		fmt.Sprintf("if the table's own key attributes are %s, write `keys: [%s]`; otherwise rename them in the entities",
			strings.Join(names, " and "), strings.Join(names, ", ")),
		"the table's keys are %s here, but the entities have %s", strings.Join(table, " and "), strings.Join(names, " and "))
}

// keyNames lists the key attributes that an entity names, sorted.
func keyNames(decl *entityDecl) []string {
	var names []string
	for _, k := range decl.key {
		names = append(names, k.name.text)
	}
	slices.Sort(names)
	return names
}

// templates reads the entity's key, which must be the table's.
func (c *checker) templates(e *checkedEntity) {
	keys := c.file.table.keys
	if len(keys) == 0 || len(e.decl.key) == 0 || c.keysRefused {
		e.broken = true
		return
	}
	e.broken = !c.givesTablesKeys(e)
	given := map[string]Word{}
	for _, k := range e.decl.key {
		given[k.name.text] = k.value
	}
	for i, k := range keys {
		w := given[k.text]
		if w.node == nil || c.refusePlaceholders(e, w) {
			e.broken = true
			continue
		}
		t, bad := templates.Parse(w.text, &e.shape.variables)
		if bad != nil {
			c.Add(c.Locate(w.node, bad.Offset, bad.Length), bad.Code, bad.Hint, "%s", bad.Message)
			e.broken = true
		}
		if i == 0 {
			e.shape.partition = t
		} else {
			e.shape.sort, e.shape.hasSort = t, true
		}
	}
	e.broken = c.refuseUncertain(e) || e.broken
}

// givesTablesKeys reports whether the key attributes of an entity are the table's. It adds one problem
// if they are not.
func (c *checker) givesTablesKeys(e *checkedEntity) bool {
	name, keys := e.decl.name.text, c.file.table.keys
	var foreign []Word
	for _, k := range e.decl.key {
		if !c.isKey(k.name.text) {
			foreign = append(foreign, k.name)
		}
	}
	if len(foreign) > 0 {
		c.Add(foreign[0].at, "entity.key", "the table's keys are "+joinWords(keys),
			"the table has no key attribute %s, which the key of %s gives", joinWords(foreign), name)
		return false
	}
	for _, k := range keys {
		if !slices.ContainsFunc(e.decl.key, func(f fieldWord) bool { return f.name.text == k.text }) {
			c.Add(e.decl.name.at, "entity.key", fmt.Sprintf("add `%s: \"...\"` to its key", k.text),
				"the key of %s does not give %s, which is a key of the table", name, k.text)
			return false
		}
	}
	return true
}

func wordTexts(ws []Word) []string {
	texts := make([]string, len(ws))
	for i, w := range ws {
		texts[i] = w.text
	}
	return texts
}

func joinWords(ws []Word) string { return strings.Join(wordTexts(ws), " and ") }
