package rules

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/rules/internal/document"
	"github.com/dynamill/dynamill/internal/rules/internal/spelling"
	"github.com/dynamill/dynamill/internal/rules/internal/templates"
)

// fileParser turns YAML nodes into declarations: it knows which keys there are
// and what they hold, and nothing of how they hang together.
type fileParser struct {
	*document.Document
	kinds kindList
}

// fields hands each field of a mapping to its function, and reports those that have none.
func (p fileParser) fields(n *document.Node, what, code string, known map[string]func(document.Field)) {
	if n.Kind != document.MappingNode {
		p.wrongNode(n, what, "a mapping")
		return
	}
	for _, f := range n.Fields {
		if take := known[f.Name]; take != nil {
			take(f)
			continue
		}
		p.Add(f.Place, code, spelling.DidYouMean(f.Name, sortedKeys(known)), "%s has no field %q", what, f.Name)
	}
}

// hasField reports whether the mapping has the field, or an unknown one that
// was probably meant to be it and is reported as such.
func hasField(n *document.Node, name string) bool {
	return slices.ContainsFunc(n.Fields, func(f document.Field) bool {
		return f.Name == name || spelling.Near(f.Name, name)
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

func (p fileParser) wrongNode(n *document.Node, what, want string) {
	if n.Kind == document.BadNode {
		return
	}
	if n.Kind == document.NullNode {
		p.Add(n.Place, "yaml.shape", "", "%s has no value; it must be %s", what, want)
		return
	}
	p.Add(n.Place, "yaml.shape", "", "%s must be %s; this is %s", what, want, n.Describe())
}

// word reads a name or another text. The empty word means that a problem was reported.
func (p fileParser) word(n *document.Node, what string) Word {
	if n.Kind != document.ScalarNode || strings.TrimSpace(n.Text) == "" {
		if n.Kind == document.ScalarNode {
			n = &document.Node{Place: n.Place, Kind: document.NullNode}
		}
		p.wrongNode(n, what, "a text")
		return Word{at: n.Place}
	}
	return Word{at: n.Place, text: strings.TrimSpace(n.Text), node: n}
}

// words reads a text, or a list of texts.
func (p fileParser) words(n *document.Node, what string) []Word {
	var ws []Word
	items := []*document.Node{n}
	if n.Kind == document.ListNode {
		items = n.Items
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
	p.fields(p.Root, "a rule file", "file.unknown_field", map[string]func(document.Field){
		"version": func(f document.Field) {
			version = true
			if f.Value.Kind != document.BadNode && f.Value.Text != "1" {
				p.Add(f.Value.Place, "file.version", "write `version: 1`", "this program reads version 1 of the rule file, and no other")
			}
		},
		"table":    func(t document.Field) { p.table(t.Value, &f.table) },
		"entities": func(e document.Field) { p.entities(e.Value, &f) },
		"rules":    func(r document.Field) { p.rules(r.Value, &f) },
	})
	top := document.Place{Line: p.Root.Line, Column: p.Root.Column, Length: 1}
	if !version {
		p.Add(top, "file.version", "write `version: 1` at the top", "the file does not say which version of the rule file it is")
	}
	p.missing(top)
	return &f
}

// missing reports the parts that the file does not have, as one problem.
func (p fileParser) missing(top document.Place) {
	var names []string
	for _, name := range []string{"table", "entities", "rules"} {
		if !hasField(p.Root, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return
	}
	hint, example := document.ExampleHint, p.kinds.smallestFile()
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
	p.AddExample(top, "file.missing", hint, example, "the file has no %s", strings.Join(names, ", no "))
}

func (p fileParser) table(n *document.Node, t *tableDecl) {
	keys := false
	p.fields(n, "table", "table.unknown_field", map[string]func(document.Field){
		"name": func(f document.Field) { t.name = p.word(f.Value, "the table's name") },
		"type": func(f document.Field) { t.typeAttribute = p.word(f.Value, "the type attribute") },
		"keys": func(f document.Field) {
			keys = true
			t.keys = p.words(f.Value, "a key")
			if len(t.keys) > 2 || f.Value.Kind == document.ListNode && len(f.Value.Items) == 0 {
				p.Add(f.Value.Place, "table.keys", "write `keys: [pk, sk]`, or `keys: [pk]` for a table without a sort key",
					"a table has one or two key attributes; this names %d", len(t.keys))
				t.keys = nil
			} else if len(t.keys) == 2 && t.keys[0].text == t.keys[1].text {
				p.Add(t.keys[1].at, "table.keys", "", "the partition key and the sort key are both %q", t.keys[0].text)
				t.keys = nil
			}
		},
	})
	if !keys && n.Kind == document.MappingNode && !hasField(n, "keys") {
		p.Add(n.Place, "table.keys", "write `keys: [pk, sk]` with the names of the table's own key attributes", "table does not name its keys")
	}
}

func (p fileParser) entities(n *document.Node, f *fileDecl) {
	if n.Empty() {
		p.AddExample(n.Place, "file.missing", "name each kind of item and give it a key template, as in:", smallestEntities,
			"the file has no entities: no item of the table can be told from another")
		return
	}
	if n.Kind != document.MappingNode {
		p.wrongNode(n, "entities", "a mapping from names to entities, as in `User: { key: { pk: \"USER#${userId}\" } }`")
		return
	}
	if len(n.Fields) > EntitiesMax {
		p.Add(n.Place, "file.too_many", "", "there are %d entities; at most %d are allowed", len(n.Fields), EntitiesMax)
		return
	}
	for _, entry := range n.Fields {
		e := entityDecl{name: Word{at: entry.Place, text: entry.Name, node: entry.Value}}
		if !templates.IsName(entry.Name) {
			p.Add(entry.Place, "entity.name", "a name has letters, digits and _, and begins with a letter",
				"%q cannot be an entity's name", entry.Name)
		}
		hasKey := false
		p.fields(entry.Value, "entity "+entry.Name, "entity.unknown_field", map[string]func(document.Field){
			"unique": func(u document.Field) { e.unique = p.word(u.Value, "unique") },
			"match":  func(m document.Field) { e.match = p.constants(m.Value, "match", false) },
			"key": func(k document.Field) {
				hasKey = true
				p.entityKey(k.Value, &e)
			},
		})
		if !hasKey && entry.Value.Kind == document.MappingNode && !hasField(entry.Value, "key") {
			p.Add(entry.Place, "entity.key", "add `key: { pk: \"...\", sk: \"...\" }`", "entity %s has no key", entry.Name)
		}
		f.entities = append(f.entities, e)
	}
}

func (p fileParser) entityKey(n *document.Node, e *entityDecl) {
	if n.Kind != document.MappingNode {
		p.wrongNode(n, "key", "a mapping from the table's key attributes to templates")
		return
	}
	if len(n.Fields) == 0 {
		p.Add(n.Place, "entity.key", "give each of the table's keys a template, as in `key: { pk: \"USER#${userId}\", sk: \"PROFILE\" }`",
			"the key of %s is empty", e.name.text)
	}
	for _, k := range n.Fields {
		if value := k.Value; value.Kind == document.ScalarNode {
			// The text as it is: blanks are part of a key.
			e.key = append(e.key, fieldWord{Word{at: k.Place, text: k.Name}, Word{at: value.Place, text: value.Text, node: value}})
		} else {
			if value.Kind == document.MappingNode {
				p.Add(value.Place, "yaml.flow", `put the template in quotes, as in "USER#${userId}"`, "to YAML, this { begins a mapping")
			} else {
				p.wrongNode(value, "a key template", "a text")
			}
			e.key = append(e.key, fieldWord{Word{at: k.Place, text: k.Name}, Word{}})
		}
	}
}

// constants reads a mapping from attributes to constants: texts, numbers, true
// and false, and null where that is allowed.
func (p fileParser) constants(n *document.Node, what string, null bool) []Constant {
	if n.Kind != document.MappingNode {
		p.wrongNode(n, what, "a mapping from attributes to constants")
		return nil
	}
	var cs []Constant
	for _, f := range n.Fields {
		name := Word{at: f.Place, text: f.Name, node: f.Value}
		if value, ok := p.constant(f.Value, what, null); ok {
			cs = append(cs, Constant{name, value})
		}
	}
	return cs
}

func (p fileParser) constant(n *document.Node, what string, null bool) (change.Value, bool) {
	switch {
	case n.Kind == document.NullNode && null:
		return change.Null(), true
	case n.Kind != document.ScalarNode:
		p.wrongNode(n, "a constant of "+what, "a text, a number, true or false")
		return change.Value{}, false
	case n.Quoted:
		return change.String(n.Text), true
	}
	switch n.Text {
	case "true", "True", "TRUE":
		return change.Bool(true), true
	case "false", "False", "FALSE":
		return change.Bool(false), true
	}
	switch strings.ToLower(n.Text) {
	case "yes", "no", "on", "off", "y", "n":
		p.Add(n.Place, "yaml.boolean", "write true or false; or, if it is a text, put it in quotes",
			"%s reads as a text here, not as true or false", n.Text)
		return change.Value{}, false
	}
	if !looksNumeric(n.Text) {
		return change.String(n.Text), true
	}
	number, err := decimal.Parse(n.Text)
	if err != nil {
		p.Add(n.Place, "yaml.number", "write it in plain decimal digits; or, if it is a text, put it in quotes",
			"%s is not a number that DynamoDB can hold", n.Text)
		return change.Value{}, false
	}
	if len(n.Text) > 1 && n.Text[0] == '0' && n.Text[1] >= '0' && n.Text[1] <= '9' {
		p.Add(n.Place, "yaml.number", "drop the zeros; or, if it is a text, put it in quotes",
			"%s begins with a zero: it could be a number or a text", n.Text)
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
	part := Word{at: w.at, text: w.text[start : start+length], node: w.node}
	if w.node == nil || w.at.Length < utf8.RuneCountInString(w.text) || w.node.Line != w.at.Line {
		return part
	}
	if w.node.Quoted && w.at == w.node.Place {
		part.at.Column++
	}
	part.at.Column += utf8.RuneCountInString(w.text[:start])
	part.at.Length = utf8.RuneCountInString(part.text)
	return part
}
