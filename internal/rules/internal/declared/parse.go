package declared

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/rules/internal/document"
	"github.com/dynamill/dynamill/internal/rules/internal/spelling"
	"github.com/dynamill/dynamill/internal/rules/internal/templates"
)

// Parser turns YAML nodes into declarations: it knows which keys there are
// and what they hold, and nothing of how they hang together.
type Parser struct {
	*document.Document
	Kinds  Kinds
	Former bool // the file was in force once, perhaps before names had backquotes: placeholders of other tools are constants in it
}

// fields hands each field of a mapping to its function, and reports those that have none.
func (p Parser) fields(n *document.Node, what, code string, known map[string]func(document.Field)) {
	if n.Kind != document.MappingNode {
		p.wrongNode(n, what, "a mapping")
		return
	}
	for _, f := range n.Fields {
		if take := known[f.Name]; take != nil {
			take(f)
			continue
		}
		p.Add(f.Place, code, spelling.DidYouMean(f.Name, slices.Sorted(maps.Keys(known))), "%s has no field %q", what, f.Name)
	}
}

// hasField reports whether the mapping has the field, or an unknown one that
// was probably meant to be it and is reported as such.
func hasField(n *document.Node, name string) bool {
	return slices.ContainsFunc(n.Fields, func(f document.Field) bool {
		return f.Name == name || spelling.Near(f.Name, name)
	})
}

func (p Parser) wrongNode(n *document.Node, what, want string) {
	switch n.Kind {
	case document.BadNode:
	case document.NullNode:
		p.Add(n.Place, "yaml.shape", "", "%s has no value; it must be %s", what, want)
	default:
		p.Add(n.Place, "yaml.shape", "", "%s must be %s; this is %s", what, want, n.Describe())
	}
}

// File reads the whole file.
func (p Parser) File() *File {
	var f File
	version := false
	p.fields(p.Root, "a rule file", "file.unknown_field", map[string]func(document.Field){
		"version": func(f document.Field) {
			version = true
			if f.Value.Kind != document.BadNode && f.Value.Text != "1" {
				p.Add(f.Value.Place, "file.version", "write `version: 1`", "this program reads version 1 of the rule file, and no other")
			}
		},
		"table":    func(t document.Field) { p.table(t.Value, &f.Table) },
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

const (
	entitiesHint = "name each kind of item and give it a key template, as in:"
	rulesHint    = "name a rule and say what it does, as in:"
)

// missing reports the parts that the file does not have, as one problem.
func (p Parser) missing(top document.Place) {
	var names []string
	for _, name := range []string{"table", "entities", "rules"} {
		if !hasField(p.Root, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return
	}
	hint, example := document.ExampleHint, p.Kinds.SmallestFile()
	switch strings.Join(names, " ") {
	case "table":
		hint, example = "add `table: { keys: [pk, sk] }` with the names of the table's own key attributes", ""
	case "entities":
		hint, example = entitiesHint, smallestEntities
	case "rules":
		hint, example = rulesHint, p.Kinds.smallestRules()
	}
	p.AddExample(top, "file.missing", hint, example, "the file has no %s", strings.Join(names, ", no "))
}

func (p Parser) table(n *document.Node, t *Table) {
	p.fields(n, "table", "table.unknown_field", map[string]func(document.Field){
		"name": func(f document.Field) { t.Name = p.word(f.Value, "the table's name") },
		"type": func(f document.Field) { t.TypeAttribute = p.name(p.word(f.Value, "the type attribute")) },
		"case": func(f document.Field) { t.Case = p.keyCase(f.Value) },
		"keys": func(f document.Field) {
			for _, w := range p.words(f.Value, "a key") {
				t.Keys = append(t.Keys, p.name(w))
			}
			if len(t.Keys) > 2 || f.Value.Kind == document.ListNode && len(f.Value.Items) == 0 {
				p.Add(f.Value.Place, "table.keys", "write `keys: [pk, sk]`, or `keys: [pk]` for a table without a sort key",
					"a table has one or two key attributes; this names %d", len(t.Keys))
				t.Keys = nil
			} else if len(t.Keys) == 2 && t.Keys[0].Text == t.Keys[1].Text {
				p.Add(t.Keys[1].At, "table.keys", "", "the partition key and the sort key are both %q", t.Keys[0].Text)
				t.Keys = nil
			}
		},
	})
	if n.Kind == document.MappingNode && !hasField(n, "keys") {
		p.Add(n.Place, "table.keys", "write `keys: [pk, sk]` with the names of the table's own key attributes", "table does not name its keys")
	}
}

// keyCase reads the letter case of the table's keys.
func (p Parser) keyCase(n *document.Node) templates.Case {
	w := p.word(n, "the case of the table's keys")
	c, ok := templates.CaseOf(w.Text)
	if w.Given() && !ok {
		p.Add(w.At, "table.case", "write `case: lower` or `case: upper`; without it, keys hold texts as they are",
			"%q is no letter case of keys", w.Text)
	}
	return c
}

func (p Parser) entities(n *document.Node, f *File) {
	if n.Empty() {
		p.AddExample(n.Place, "file.missing", entitiesHint, smallestEntities,
			"the file has no entities: no item of the table can be told from another")
		return
	}
	for _, entry := range p.named(n, "entities", "User: { key: { pk: \"USER#${userId}\" } }", EntitiesMax) {
		e := Entity{Name: Word{At: entry.Place, Text: entry.Name, Node: entry.Value}}
		if !templates.IsName(entry.Name) {
			p.Add(entry.Place, "entity.name", "a name has letters, digits and _, and begins with a letter",
				"%q cannot be an entity's name", entry.Name)
		}
		p.fields(entry.Value, "entity "+entry.Name, "entity.unknown_field", map[string]func(document.Field){
			"unique":           func(u document.Field) { e.Unique = p.name(p.word(u.Value, "unique")) },
			"match":            func(m document.Field) { e.Match = p.plainConstants(m.Value, "match", false, "") },
			"derived":          func(d document.Field) { e.Derived = p.flag(d, "derived") },
			"expire":           func(x document.Field) { e.Expire = p.word(x.Value, "expire") },
			"expire_attribute": func(x document.Field) { e.ExpireAttribute = p.name(p.word(x.Value, "expire_attribute")) },
			"key":              func(k document.Field) { p.entityKey(k.Value, &e) },
		})
		if entry.Value.Kind == document.MappingNode && !hasField(entry.Value, "key") {
			p.Add(entry.Place, "entity.key", "add `key: { pk: \"...\", sk: \"...\" }`", "entity %s has no key", entry.Name)
		}
		f.Entities = append(f.Entities, e)
	}
}

// flag reads true or false. The word is given if it is true.
func (p Parser) flag(f document.Field, what string) Word {
	w := p.word(f.Value, what)
	if w.Given() && w.Text != "true" && w.Text != "false" {
		p.Add(w.At, "entity."+what, "write `"+what+": true`, or drop it", "%s must be true or false", what)
	}
	if w.Text != "true" {
		return Word{}
	}
	return Word{At: f.Place, Text: w.Text, Node: w.Node}
}

// named returns the fields of a mapping from names to entities, or to rules; none if there are too many.
func (p Parser) named(n *document.Node, what, example string, most int) []document.Field {
	switch {
	case n.Kind != document.MappingNode:
		p.wrongNode(n, what, "a mapping from names to "+what+", as in `"+example+"`")
	case len(n.Fields) > most:
		p.Add(n.Place, "file.too_many", "", "there are %d %s; at most %d are allowed", len(n.Fields), what, most)
	default:
		return n.Fields
	}
	return nil
}

func (p Parser) entityKey(n *document.Node, e *Entity) {
	if n.Kind != document.MappingNode {
		p.wrongNode(n, "key", "a mapping from the table's key attributes to templates")
		return
	}
	if len(n.Fields) == 0 {
		p.Add(n.Place, "entity.key", "give each of the table's keys a template, as in `key: { pk: \"USER#${userId}\", sk: \"PROFILE\" }`",
			"the key of %s is empty", e.Name.Text)
	}
	known := map[string]bool{}
	for _, k := range n.Fields {
		key := FieldWord{Name: p.newName(Word{At: k.Place, Text: k.Name}, known)}
		switch value := k.Value; value.Kind {
		case document.ScalarNode:
			key.Value = Word{At: value.Place, Text: value.Text, Node: value} // the text as it is: blanks are part of a key
		case document.MappingNode:
			p.Add(value.Place, "yaml.flow", `put the template in quotes, as in "USER#${userId}"`, "to YAML, this { begins a mapping")
		default:
			p.wrongNode(value, "a key template", "a text")
		}
		e.Key = append(e.Key, key)
	}
}

// plainConstants reads constants, and refuses those that look like templates. otherRule is the form of a rule that could work such a value
// out, with %s for the attribute and %q for the template; "" if none could.
func (p Parser) plainConstants(n *document.Node, what string, null bool, otherRule string) []Constant {
	cs := p.constants(n, what, null)
	for _, c := range cs {
		if text := c.Value.Text(); c.Value.Kind() == change.KindString && strings.Contains(text, "${") && !p.Former {
			hint := "write the value itself, without ${ }"
			if otherRule != "" {
				hint += "; or let another rule work it out for each of the items: " + fmt.Sprintf(otherRule, c.Name.Text, text)
			}
			p.Add(c.Name.Node.Place, "rule.constant", hint, "%s holds constants: this one is the text %q itself", what, text)
		}
	}
	return cs
}

// constants reads a mapping from attributes to constants: texts, numbers, true
// and false, and null where that is allowed.
func (p Parser) constants(n *document.Node, what string, null bool) []Constant {
	if n.Kind != document.MappingNode {
		p.wrongNode(n, what, "a mapping from attributes to constants")
		return nil
	}
	var cs []Constant
	known := map[string]bool{}
	for _, f := range n.Fields {
		name := p.newName(Word{At: f.Place, Text: f.Name, Node: f.Value}, known)
		if value, ok := p.constant(f.Value, what, null); ok {
			cs = append(cs, Constant{name, value})
		}
	}
	return cs
}

func (p Parser) constant(n *document.Node, what string, null bool) (change.Value, bool) {
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
	number, err := decimal.Parse(n.Text)
	switch {
	case slices.Contains([]string{"yes", "no", "on", "off", "y", "n"}, strings.ToLower(n.Text)):
		p.Add(n.Place, "yaml.boolean", "write true or false; or, if it is a text, put it in quotes",
			"%s reads as a text here, not as true or false", n.Text)
	case !readsAsNumber(n.Text):
		return change.String(n.Text), true
	case err != nil:
		p.Add(n.Place, "yaml.number", "write it in plain decimal digits; or, if it is a text, put it in quotes",
			"%s is not a number that DynamoDB can hold", n.Text)
	case len(n.Text) > 1 && n.Text[0] == '0' && n.Text[1] >= '0' && n.Text[1] <= '9':
		p.Add(n.Place, "yaml.number", "drop the zeros; or, if it is a text, put it in quotes",
			"%s begins with a zero: it could be a number or a text", n.Text)
	default:
		return change.Number(number.String()), true
	}
	return change.Value{}, false
}

// readsAsNumber reports whether YAML or a reader would take the text for a number.
func readsAsNumber(s string) bool {
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
