package check

import (
	"fmt"
	"strings"

	"github.com/dynamill/dynamill/internal/rules/internal/declared"
	"github.com/dynamill/dynamill/internal/rules/internal/templates"
)

// uncertainPlaceholder is a $name or :name in a template: a placeholder, or a part of the key.
type uncertainPlaceholder struct {
	templates.Placeholder
	key declared.Word // the whole template
}

// refusePlaceholders reports a template that has placeholders of other tools, and returns
// true. It keeps each $name and :name for later.
func (c *checker) refusePlaceholders(e *Entity, w declared.Word) bool {
	if c.former {
		return false
	}
	found := templates.Placeholders(w.Text)
	var certain []templates.Placeholder
	for _, p := range found {
		if p.Certain {
			certain = append(certain, p)
			continue
		}
		e.uncertain = append(e.uncertain, uncertainPlaceholder{p, w})
	}
	if len(certain) == 0 {
		return false
	}
	if !e.hasVariable() {
		certain, e.uncertain = found, dropTemplate(e.uncertain, w)
	}
	c.reportPlaceholders(w, certain)
	return true
}

// hasVariable reports whether a template of the entity has a ${}.
func (e *Entity) hasVariable() bool {
	for _, k := range e.Decl.Key {
		if strings.Contains(k.Value.Text, templates.VariableMark) {
			return true
		}
	}
	return false
}

func dropTemplate(uncertain []uncertainPlaceholder, w declared.Word) []uncertainPlaceholder {
	var kept []uncertainPlaceholder
	for _, s := range uncertain {
		if s.key.Node != w.Node {
			kept = append(kept, s)
		}
	}
	return kept
}

// reportPlaceholders reports a template's placeholders as one problem, at the first of them.
func (c *checker) reportPlaceholders(w declared.Word, found []templates.Placeholder) {
	first, all := found[0], false
	for _, p := range found {
		all = all || !p.Certain
	}
	marked := w.Text[first.Offset : first.Offset+first.Length]
	c.Add(c.Locate(w.Node, first.Offset, first.Length), "template.placeholder",
		fmt.Sprintf("write %s; if the key itself holds %s, keep it with a backslash: %s", yamlText(templates.Corrected(w.Text, found)), marked,
			yamlText(templates.KeptAsText(w.Text, all))),
		"%s is a placeholder of another tool and a constant here: a variable is written ${%s}", marked, first.Name)
}

// refuseUncertain reports each $name and :name of an entity without any variable:
// its key would be one constant. It returns true if there are any.
func (c *checker) refuseUncertain(e *Entity) bool {
	if len(e.uncertain) == 0 || e.hasVariable() {
		return false
	}
	for len(e.uncertain) > 0 {
		w := e.uncertain[0].key
		c.reportPlaceholders(w, templates.Placeholders(w.Text))
		e.uncertain = dropTemplate(e.uncertain, w)
	}
	return true
}

// blames reports whether the entity lacks a variable because its template has the
// name as $name or :name. The first call for a name reports that as a problem.
func (c *checker) blames(e *Entity, name string) bool {
	if e.blamed[name] {
		return true
	}
	for _, s := range e.uncertain {
		if s.Name != name {
			continue
		}
		c.reportPlaceholders(s.key, []templates.Placeholder{s.Placeholder})
		if e.blamed == nil {
			e.blamed = map[string]bool{}
		}
		e.blamed[name] = true
		return true
	}
	return false
}

// warnUncertain warns of each $name and :name that is a constant beside variables,
// once for each text: all keys of one table may begin with it.
func (c *checker) warnUncertain() {
	type warned struct {
		uncertainPlaceholder
		more int
	}
	var list []*warned
	known := map[string]*warned{}
	for _, e := range c.out.Entities {
		for _, s := range e.uncertain {
			marked := s.key.Text[s.Offset : s.Offset+s.Length]
			if first := known[marked]; first != nil {
				first.more++
				continue
			}
			known[marked] = &warned{uncertainPlaceholder: s}
			list = append(list, known[marked])
		}
	}
	for _, w := range list {
		text, marked := w.key.Text, w.key.Text[w.Offset:w.Offset+w.Length]
		others := ""
		if w.more == 1 {
			others = "; it stands in 1 more place"
		} else if w.more > 1 {
			others = fmt.Sprintf("; it stands in %d more places", w.more)
		}
		c.Warn(c.Locate(w.key.Node, w.Offset, w.Length), "template.placeholder",
			fmt.Sprintf("if it is a variable, write %s; if the keys hold %s, keep it with a backslash: %s",
				yamlText(templates.Corrected(text, []templates.Placeholder{w.Placeholder})), marked, yamlText(templates.KeptAsText(text, true))),
			"%s is a constant here, not a variable%s", marked, others)
	}
}

// yamlText writes a template as a value of a rule file. In double quotes YAML has
// escapes of its own, so a template with a backslash stands in single quotes.
func yamlText(text string) string {
	if strings.ContainsAny(text, `\"`) {
		return "'" + strings.ReplaceAll(text, "'", "''") + "'"
	}
	return `"` + text + `"`
}
