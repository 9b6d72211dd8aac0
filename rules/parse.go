package rules

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/rules/internal/templates"
)

// fileParser turns YAML nodes into declarations: it knows which keys there are
// and what they hold, and nothing of how they hang together.
type fileParser struct{ *document }

// fields hands each field of a mapping to its function, and reports those that have none.
func (p fileParser) fields(n *node, what, code string, known map[string]func(field)) {
	if n.kind != mappingNode {
		p.wrongNode(n, what, "a mapping")
		return
	}
	for _, f := range n.fields {
		if take := known[f.name]; take != nil {
			take(f)
			continue
		}
		p.add(f.place, code, didYouMean(f.name, sortedKeys(known)), "%s has no field %q", what, f.name)
	}
}

// hasField reports whether the mapping has the field, or an unknown one that
// was probably meant to be it and is reported as such.
func hasField(n *node, name string) bool {
	return slices.ContainsFunc(n.fields, func(f field) bool {
		return f.name == name || near(f.name, name)
	})
}

func sortedKeys[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (p fileParser) wrongNode(n *node, what, want string) {
	if n.kind == badNode {
		return
	}
	if n.kind == nullNode {
		p.add(n.place, "yaml.shape", "", "%s has no value; it must be %s", what, want)
		return
	}
	p.add(n.place, "yaml.shape", "", "%s must be %s; this is %s", what, want, n.describe())
}

// word reads a name or another text. The empty word means that a problem was reported.
func (p fileParser) word(n *node, what string) Word {
	if n.kind != scalarNode || strings.TrimSpace(n.text) == "" {
		if n.kind == scalarNode {
			n = &node{place: n.place, kind: nullNode}
		}
		p.wrongNode(n, what, "a text")
		return Word{place: n.place}
	}
	return Word{place: n.place, text: strings.TrimSpace(n.text), node: n}
}

// words reads a text, or a list of texts.
func (p fileParser) words(n *node, what string) []Word {
	var ws []Word
	items := []*node{n}
	if n.kind == listNode {
		items = n.items
	}
	for _, item := range items {
		if w := p.word(item, what); w.Given() {
			ws = append(ws, w)
		}
	}
	return ws
}

func (p fileParser) file() *fileDecl {
	var f fileDecl
	version := false
	p.fields(p.root, "a rule file", "file.unknown_field", map[string]func(field){
		"version": func(f field) {
			version = true
			if f.value.kind != badNode && f.value.text != "1" {
				p.add(f.value.place, "file.version", "write `version: 1`", "this program reads version 1 of the rule file, and no other")
			}
		},
		"table":    func(t field) { p.table(t.value, &f.table) },
		"entities": func(e field) { p.entities(e.value, &f) },
		"rules":    func(r field) { p.rules(r.value, &f) },
	})
	top := place{line: p.root.line, column: p.root.column, length: 1}
	if !version {
		p.add(top, "file.version", "write `version: 1` at the top", "the file does not say which version of the rule file it is")
	}
	p.missing(top)
	return &f
}

// missing reports the parts that the file does not have, as one problem.
func (p fileParser) missing(top place) {
	var names []string
	for _, name := range []string{"table", "entities", "rules"} {
		if !hasField(p.root, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return
	}
	hint, example := smallestFileHint, p.kinds.smallestFile()
	if len(names) == 1 {
		switch names[0] {
		case "table":
			hint, example = "add `table: { keys: [pk, sk] }` with the names of the table's own key attributes", ""
		case "entities":
			hint, example = "name each kind of item and give it a key template, as in:", smallestEntities
		case "rules":
			hint, example = "name a rule and say what it does, as in:", p.kinds.smallestRules()
		}
	}
	p.addExample(top, "file.missing", hint, example, "the file has no %s", strings.Join(names, ", no "))
}

func (p fileParser) table(n *node, t *tableDecl) {
	keys := false
	p.fields(n, "table", "table.unknown_field", map[string]func(field){
		"name": func(f field) { t.name = p.word(f.value, "the table's name") },
		"type": func(f field) { t.typeAttribute = p.word(f.value, "the type attribute") },
		"keys": func(f field) {
			keys = true
			t.keys = p.words(f.value, "a key")
			if len(t.keys) > 2 || f.value.kind == listNode && len(f.value.items) == 0 {
				p.add(f.value.place, "table.keys", "write `keys: [pk, sk]`, or `keys: [pk]` for a table without a sort key",
					"a table has one or two key attributes; this names %d", len(t.keys))
				t.keys = nil
			} else if len(t.keys) == 2 && t.keys[0].text == t.keys[1].text {
				p.add(t.keys[1].place, "table.keys", "", "the partition key and the sort key are both %q", t.keys[0].text)
				t.keys = nil
			}
		},
	})
	if !keys && n.kind == mappingNode && !hasField(n, "keys") {
		p.add(n.place, "table.keys", "write `keys: [pk, sk]` with the names of the table's own key attributes", "table does not name its keys")
	}
}

func (p fileParser) entities(n *node, f *fileDecl) {
	if n.empty() {
		p.addExample(n.place, "file.missing", "name each kind of item and give it a key template, as in:", smallestEntities, "the file has no entities: no item of the table can be told from another")
		return
	}
	if n.kind != mappingNode {
		p.wrongNode(n, "entities", "a mapping from names to entities, as in `User: { key: { pk: \"USER#${userId}\" } }`")
		return
	}
	if len(n.fields) > EntitiesMax {
		p.add(n.place, "file.too_many", "", "there are %d entities; at most %d are allowed", len(n.fields), EntitiesMax)
		return
	}
	for _, entry := range n.fields {
		e := entityDecl{name: Word{place: entry.place, text: entry.name, node: entry.value}}
		if !templates.IsName(entry.name) {
			p.add(entry.place, "entity.name", "a name has letters, digits and _, and begins with a letter",
				"%q cannot be an entity's name", entry.name)
		}
		hasKey := false
		p.fields(entry.value, "entity "+entry.name, "entity.unknown_field", map[string]func(field){
			"unique": func(u field) { e.unique = p.word(u.value, "unique") },
			"match":  func(m field) { e.match = p.constants(m.value, "match", false) },
			"key": func(k field) {
				hasKey = true
				p.entityKey(k.value, &e)
			},
		})
		if !hasKey && entry.value.kind == mappingNode && !hasField(entry.value, "key") {
			p.add(entry.place, "entity.key", "add `key: { pk: \"...\", sk: \"...\" }`", "entity %s has no key", entry.name)
		}
		f.entities = append(f.entities, e)
	}
}

func (p fileParser) entityKey(n *node, e *entityDecl) {
	if n.kind != mappingNode {
		p.wrongNode(n, "key", "a mapping from the table's key attributes to templates")
		return
	}
	if len(n.fields) == 0 {
		p.add(n.place, "entity.key", "give each of the table's keys a template, as in `key: { pk: \"USER#${userId}\", sk: \"PROFILE\" }`",
			"the key of %s is empty", e.name.text)
	}
	for _, k := range n.fields {
		if value := k.value; value.kind == scalarNode {
			// The text as it is: blanks are part of a key.
			e.key = append(e.key, fieldWord{Word{place: k.place, text: k.name}, Word{place: value.place, text: value.text, node: value}})
		} else {
			if value.kind == mappingNode {
				p.add(value.place, "yaml.flow", `put the template in quotes, as in "USER#${userId}"`, "to YAML, this { begins a mapping")
			} else {
				p.wrongNode(value, "a key template", "a text")
			}
			e.key = append(e.key, fieldWord{Word{place: k.place, text: k.name}, Word{}})
		}
	}
}

// constants reads a mapping from attributes to constants: texts, numbers, true
// and false, and null where that is allowed.
func (p fileParser) constants(n *node, what string, null bool) []Constant {
	if n.kind != mappingNode {
		p.wrongNode(n, what, "a mapping from attributes to constants")
		return nil
	}
	var cs []Constant
	for _, f := range n.fields {
		name := Word{place: f.place, text: f.name, node: f.value}
		if value, ok := p.constant(f.value, what, null); ok {
			cs = append(cs, Constant{name, value})
		}
	}
	return cs
}

func (p fileParser) constant(n *node, what string, null bool) (change.Value, bool) {
	switch {
	case n.kind == nullNode && null:
		return change.Null(), true
	case n.kind != scalarNode:
		p.wrongNode(n, "a constant of "+what, "a text, a number, true or false")
		return change.Value{}, false
	case n.quoted:
		return change.String(n.text), true
	}
	switch n.text {
	case "true", "True", "TRUE":
		return change.Bool(true), true
	case "false", "False", "FALSE":
		return change.Bool(false), true
	}
	switch strings.ToLower(n.text) {
	case "yes", "no", "on", "off", "y", "n":
		p.add(n.place, "yaml.boolean", "write true or false; or, if it is a text, put it in quotes",
			"%s reads as a text here, not as true or false", n.text)
		return change.Value{}, false
	}
	if !looksNumeric(n.text) {
		return change.String(n.text), true
	}
	number, err := decimal.Parse(n.text)
	if err != nil {
		p.add(n.place, "yaml.number", "write it in plain decimal digits; or, if it is a text, put it in quotes", "%s is not a number that DynamoDB can hold", n.text)
		return change.Value{}, false
	}
	if len(n.text) > 1 && n.text[0] == '0' && n.text[1] >= '0' && n.text[1] <= '9' {
		p.add(n.place, "yaml.number", "drop the zeros; or, if it is a text, put it in quotes", "%s begins with a zero: it could be a number or a text", n.text)
		return change.Value{}, false
	}
	return change.Number(number.String()), true
}

// looksNumeric reports whether YAML or a reader would take the text for a number.
func looksNumeric(s string) bool {
	s = strings.TrimLeft(s, "+-")
	if lower := strings.ToLower(s); lower == ".inf" || lower == ".nan" {
		return true
	}
	if s == "" || (s[0] < '0' || s[0] > '9') && (s[0] != '.' || len(s) == 1 || s[1] < '0' || s[1] > '9') {
		return false
	}
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return true
	}
	_, err := strconv.ParseInt(s, 0, 64)
	return err == nil || strings.Trim(s, "0123456789_.") == "" && strings.Count(s, ".") < 2
}

// within narrows a word to a part of its text, if the word stands in one line as it is read.
func (w Word) within(start, length int) Word {
	part := Word{place: w.place, text: w.text[start : start+length], node: w.node}
	if w.node == nil || w.length < utf8.RuneCountInString(w.text) || w.node.line != w.line {
		return part
	}
	if w.node.quoted && w.place == w.node.place {
		part.column++
	}
	part.column += utf8.RuneCountInString(w.text[:start])
	part.length = utf8.RuneCountInString(part.text)
	return part
}
