package rules

import (
	"fmt"
	"regexp"
	"strings"
)

// placeholder is a part of a template that other tools take for a variable.
// To dynamill it is a constant, so that no item would fit the template.
type placeholder struct {
	offset, length int // bytes in the template
	name           string
	certain        bool // it has a mark on both sides: $name and :name may well be parts of a key
}

// Placeholders of other tools, at the beginning of a text.
var (
	enclosedName = regexp.MustCompile(`^(?:<+ *([A-Za-z_][\w.-]*) *>+|\{+ *\.?([A-Za-z_][\w.-]*) *\}+|%([A-Za-z_][\w.-]*)%)`)
	prefixedName = regexp.MustCompile(`^[$:]([A-Za-z_]\w*)`)
	percentCode  = regexp.MustCompile(`^%[0-9A-Fa-f]{2}%`) // of a text that is percent-encoded, as in %C3%A9
)

// placeholdersIn finds the placeholders of a template, outside its variables and escapes.
func placeholdersIn(text string) []placeholder {
	var found []placeholder
	for at := 0; at < len(text); {
		length := 1
		if _, kept := escaped(text[at:]); kept > 0 {
			length = kept
		} else if strings.HasPrefix(text[at:], variableMark) {
			end := strings.IndexByte(text[at:], '}')
			if end < 0 {
				return found // parseTemplate reports it
			}
			length = end + 1
		} else if p, ok := placeholderAt(text, at); ok {
			found = append(found, p)
			length = p.length
		}
		at += length
	}
	return found
}

func placeholderAt(text string, at int) (placeholder, bool) {
	rest := text[at:]
	if m := enclosedName.FindStringSubmatch(rest); m != nil && !percentCode.MatchString(rest) {
		return placeholder{offset: at, length: len(m[0]), name: variableName(m[1] + m[2] + m[3]), certain: true}, true
	}
	if m := prefixedName.FindStringSubmatch(rest); m != nil && (rest[0] == '$' || !separates(text, at)) {
		return placeholder{offset: at, length: len(m[0]), name: m[1]}, true
	}
	return placeholder{}, false
}

// separates reports whether a colon follows a letter, a digit or a colon: it then
// parts two words, as in "CONFIG:global".
func separates(text string, colon int) bool {
	if colon == 0 {
		return false
	}
	before := text[colon-1]
	return before == ':' || before != '_' && (isName(text[colon-1:colon]) || before >= '0' && before <= '9')
}

// variableName makes a variable's name of a placeholder's: user-id becomes user_id.
func variableName(name string) string {
	return strings.NewReplacer("-", "_", ".", "_").Replace(strings.TrimRight(name, ".-"))
}

// corrected is the template with its placeholders written as variables.
func corrected(text string, found []placeholder) string {
	var b strings.Builder
	at := 0
	for _, p := range found {
		b.WriteString(text[at:p.offset])
		b.WriteString(variableMark + p.name + "}")
		at = p.offset + p.length
	}
	b.WriteString(text[at:])
	return b.String()
}

// keptAsText is the template with its placeholders escaped: all, or the certain ones.
func keptAsText(text string, all bool) string {
	for {
		next := -1
		for _, p := range placeholdersIn(text) {
			if all || p.certain {
				next = p.offset
				break
			}
		}
		if next < 0 {
			return text
		}
		text = text[:next] + `\` + text[next:]
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

// uncertainPlaceholder is a $name or :name in a template: a placeholder, or a part of the key.
type uncertainPlaceholder struct {
	placeholder
	template Word
}

// refusePlaceholders reports a template that has placeholders of other tools, and returns
// true. It keeps each $name and :name for later.
func (c *checker) refusePlaceholders(e *checkedEntity, w Word) bool {
	if c.former {
		return false
	}
	found := placeholdersIn(w.text)
	var certain []placeholder
	for _, p := range found {
		if p.certain {
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
func (e *checkedEntity) hasVariable() bool {
	for _, k := range e.decl.key {
		if strings.Contains(k.value.text, variableMark) {
			return true
		}
	}
	return false
}

func dropTemplate(uncertain []uncertainPlaceholder, w Word) []uncertainPlaceholder {
	var kept []uncertainPlaceholder
	for _, s := range uncertain {
		if s.template.node != w.node {
			kept = append(kept, s)
		}
	}
	return kept
}

// reportPlaceholders reports a template's placeholders as one problem, at the first of them.
func (c *checker) reportPlaceholders(w Word, found []placeholder) {
	first, all := found[0], false
	for _, p := range found {
		all = all || !p.certain
	}
	marked := w.text[first.offset : first.offset+first.length]
	c.add(c.locate(w.node, first.offset, first.length), "template.placeholder",
		fmt.Sprintf("write %s; if the key itself holds %s, keep it with a backslash: %s", yamlText(corrected(w.text, found)), marked, yamlText(keptAsText(w.text, all))),
		"%s is a placeholder of another tool and a constant here: a variable is written ${%s}", marked, first.name)
}

// refuseUncertain reports each $name and :name of an entity without any variable:
// its key would be one constant. It returns true if there are any.
func (c *checker) refuseUncertain(e *checkedEntity) bool {
	if len(e.uncertain) == 0 || e.hasVariable() {
		return false
	}
	for len(e.uncertain) > 0 {
		w := e.uncertain[0].template
		c.reportPlaceholders(w, placeholdersIn(w.text))
		e.uncertain = dropTemplate(e.uncertain, w)
	}
	return true
}

// blames reports whether the entity lacks a variable because its template has the
// name as $name or :name. The first call for a name reports that as a problem.
func (c *checker) blames(e *checkedEntity, name string) bool {
	if e.blamed[name] {
		return true
	}
	for _, s := range e.uncertain {
		if s.name != name {
			continue
		}
		c.reportPlaceholders(s.template, []placeholder{s.placeholder})
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
	for _, e := range c.out.entities {
		for _, s := range e.uncertain {
			marked := s.template.text[s.offset : s.offset+s.length]
			if first := known[marked]; first != nil {
				first.more++
				continue
			}
			known[marked] = &warned{uncertainPlaceholder: s}
			list = append(list, known[marked])
		}
	}
	for _, w := range list {
		text, marked := w.template.text, w.template.text[w.offset:w.offset+w.length]
		others := ""
		if w.more == 1 {
			others = "; it stands in 1 more place"
		} else if w.more > 1 {
			others = fmt.Sprintf("; it stands in %d more places", w.more)
		}
		c.warn(c.locate(w.template.node, w.offset, w.length), "template.placeholder",
			fmt.Sprintf("if it is a variable, write %s; if the keys hold %s, keep it with a backslash: %s",
				yamlText(corrected(text, []placeholder{w.placeholder})), marked, yamlText(keptAsText(text, true))),
			"%s is a constant here, not a variable%s", marked, others)
	}
}
