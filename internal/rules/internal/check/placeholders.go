package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/internal/rules/internal/declared"
	"github.com/dynamill/dynamill/internal/rules/internal/templates"
)

// uncertainPlaceholder is a $name or :name in a template: a placeholder, or a part of the key.
type uncertainPlaceholder struct {
	templates.Placeholder
	key declared.Word // the whole template
}

func (u uncertainPlaceholder) marked() string { return u.key.Text[u.Offset : u.Offset+u.Length] }

// refusePlaceholders reports a template that has placeholders of other tools, and returns
// true. It keeps each $name and :name for later.
func (c *checker) refusePlaceholders(e *Entity, w declared.Word) bool {
	if c.Former {
		return false
	}
	found := templates.Placeholders(w.Text)
	var certain []templates.Placeholder
	for _, p := range found {
		if p.Certain {
			certain = append(certain, p)
		} else {
			e.uncertain = append(e.uncertain, uncertainPlaceholder{p, w})
		}
	}
	if len(certain) == 0 {
		return false
	}
	if !e.hasVariable() {
		certain = found
		e.forget(w)
	}
	c.reportPlaceholders(w, certain)
	return true
}

func (e *Entity) hasVariable() bool {
	return slices.ContainsFunc(e.Decl.Key, func(k declared.FieldWord) bool {
		return strings.Contains(k.Value.Text, templates.VariableMark)
	})
}

func (e *Entity) forget(w declared.Word) {
	e.uncertain = slices.DeleteFunc(e.uncertain, func(s uncertainPlaceholder) bool { return s.key.Node == w.Node })
}

// reportPlaceholders reports a template's placeholders as one problem, at the first of them.
func (c *checker) reportPlaceholders(w declared.Word, found []templates.Placeholder) {
	first := found[0]
	all := slices.ContainsFunc(found, func(p templates.Placeholder) bool { return !p.Certain })
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
		e.forget(w)
	}
	return true
}

// blames reports whether the entity lacks a variable because its template has the
// name as $name or :name. The first call for a name reports that as a problem.
func (c *checker) blames(e *Entity, name string) bool {
	if e.blamed[name] {
		return true
	}
	i := slices.IndexFunc(e.uncertain, func(s uncertainPlaceholder) bool { return s.Name == name })
	if i < 0 {
		return false
	}
	c.reportPlaceholders(e.uncertain[i].key, []templates.Placeholder{e.uncertain[i].Placeholder})
	e.blamed[name] = true
	return true
}

// warnUncertain warns of each $name and :name that is a constant beside variables,
// once for each text: all keys of one table may begin with it.
func (c *checker) warnUncertain() {
	var firsts []uncertainPlaceholder
	places := map[string]int{}
	for _, e := range c.out.Entities {
		for _, s := range e.uncertain {
			if places[s.marked()]++; places[s.marked()] == 1 {
				firsts = append(firsts, s)
			}
		}
	}
	for _, w := range firsts {
		text, marked := w.key.Text, w.marked()
		others := ""
		if more := places[marked] - 1; more == 1 {
			others = "; it stands in 1 more place"
		} else if more > 1 {
			others = fmt.Sprintf("; it stands in %d more places", more)
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
