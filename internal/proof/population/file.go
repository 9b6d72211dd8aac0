package population

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/dynamill/dynamill/internal/rules"
)

// file is what a rule file says and its compiled Set does not tell.
type file struct {
	templates       map[string]map[string]string // of each entity, by key attribute
	keyCase         string                       // in which keys hold texts; "" if as they are
	joined          [][2]string                  // names that `by` joins: theirs and ours
	handed          [][2]string                  // names between which a copy or a mirror hands a value on
	lists           [][2]string                  // lists, and the names of their elements
	totals          []string                     // attributes that rules work out
	padded          []string                     // attributes that are padded to a width
	cut             map[string]int               // attributes of which a template reads characters: from which on
	wheres, amounts []string                     // expressions
}

// readFile reads a rule file that rules.Load has accepted.
func readFile(src string, set *rules.Set) (*file, error) {
	var raw struct {
		Table    struct{ Case string }
		Entities map[string]struct{ Key map[string]string }
		Rules    map[string]map[string]any
	}
	if err := yaml.Unmarshal([]byte(src), &raw); err != nil {
		return nil, fmt.Errorf("reading the templates of a rule file: %w", err)
	}
	f := &file{templates: map[string]map[string]string{}, keyCase: raw.Table.Case, cut: map[string]int{}}
	for name, e := range raw.Entities {
		f.templates[name] = e.Key
	}
	for _, rule := range set.Rules {
		said := raw.Rules[rule.Name]
		f.joined = append(f.joined, f.pairsOf(rule, said["by"])...)
		f.handed = append(f.handed, pairs(said["attributes"])...)
		f.lists = append(f.lists, pairs(said["each"])...)
		if nester, ok := rule.Form.(rules.Nester); ok {
			if _, _, lineage := nester.Nested(); lineage != "" {
				f.lists = append(f.lists, [2]string{lineage, rule.By[0].Theirs})
			}
		} else if rule.HasParent() {
			for _, a := range rule.Attributes {
				f.handed = append(f.handed, [2]string{a.From, a.As})
			}
		}
		for _, a := range rule.Attributes {
			f.addTemplate(a)
			if rule.Displays() && a.From != "" {
				f.handed = append(f.handed, [2]string{a.From, a.As})
			}
		}
		if rule.Displays() && addsUp(rule.Kind) {
			f.totals = append(f.totals, rule.Writes...)
		}
		if where := said["where"]; where != nil {
			f.wheres = append(f.wheres, fmt.Sprint(where))
		}
		for _, e := range rule.Kind.Traits().Expressions {
			f.amounts = append(f.amounts, fmt.Sprint(said[e.Key]))
		}
	}
	return f, nil
}

// pairsOf reads a `by`. One name that the other side does not have stands for the variable that is left there.
func (f *file) pairsOf(rule *rules.Rule, by any) [][2]string {
	found := pairs(by)
	text, bare := by.(string)
	name := unquoted(text)
	theirs, ours := rule.Target, rule.Source
	if rule.HasParent() {
		theirs, ours = rule.Source, rule.Target
	}
	for _, by := range rule.By {
		if by.Expression && len(readsOf(by.Ours)) > 0 {
			found = slices.DeleteFunc(found, func(pair [2]string) bool { return pair[0] == by.Theirs }) // found has another order than By
			found = append(found, [2]string{by.Theirs, readsOf(by.Ours)[0]})
		}
	}
	variables := f.variables(theirs)
	if !bare || name == theirs.Unique || slices.Contains(variables, name) {
		return found
	}
	known := f.variables(ours)
	left := slices.DeleteFunc(variables, func(v string) bool { return slices.Contains(known, v) })
	return [][2]string{{left[0], name}}
}

// variables lists those of an entity's key.
func (f *file) variables(e *rules.Entity) (names []string) {
	for _, template := range f.templates[e.Name] {
		for _, part := range f.parts(template) {
			if part.variable != "" && !slices.Contains(names, part.variable) {
				names = append(names, part.variable)
			}
		}
	}
	return names
}

// wholeName is a template that hands one attribute on; slice finds those of which
// it reads some characters, arithmetic what it reckons with.
var (
	wholeName  = regexp.MustCompile("^\\$\\{(\\w+|`[^`]*`)\\}$")
	slice      = regexp.MustCompile(`\b(\w+)\[(\d+):`)
	arithmetic = regexp.MustCompile(`^ *=(.*)$|pad\((\w+),|\$\{([^{}]*\*[^{}]*)\}`)
)

// addTemplate reads the text from which an attribute is worked out.
func (f *file) addTemplate(a rules.Attribute) {
	if a.Template == nil {
		return
	}
	if name := wholeName.FindStringSubmatch(a.Template.String()); name != nil {
		f.handed = append(f.handed, [2]string{unquoted(name[1]), a.As})
	}
	for _, found := range arithmetic.FindAllStringSubmatch(a.Template.String(), -1) {
		f.amounts = append(f.amounts, found[1]+found[3])
		if found[2] != "" {
			f.padded = append(f.padded, found[2])
		}
	}
	for _, found := range slice.FindAllStringSubmatch(a.Template.String(), -1) {
		if from, err := strconv.Atoi(found[2]); err == nil {
			f.cut[found[1]] = max(f.cut[found[1]], from)
		}
	}
}

// pairs reads what `by` and `attributes` have: a name, `one as another`, a
// list of these, or a mapping.
func pairs(said any) [][2]string {
	switch said := said.(type) {
	case string:
		one, other, two := strings.Cut(said, " as ")
		if !two {
			other = one
		}
		return [][2]string{{unquoted(one), unquoted(other)}}
	case []any:
		var found [][2]string
		for _, one := range said {
			found = append(found, pairs(one)...)
		}
		return found
	case map[string]any:
		var found [][2]string
		for _, theirs := range slices.Sorted(maps.Keys(said)) {
			found = append(found, [2]string{unquoted(theirs), unquoted(fmt.Sprint(said[theirs]))})
		}
		return found
	}
	return nil
}

// unquoted is a name without its backquotes.
func unquoted(name string) string { return strings.Trim(strings.TrimSpace(name), "`") }

// part is a piece of a key template: a literal, or a variable.
type part struct {
	literal  string
	variable string // "" for a literal
	rest     bool   // the variable takes what is left of the key, # included
	in       string // the letter case of what the key holds; "" if as it is
	width    int    // of a padded number
}

var hole = regexp.MustCompile("\\$\\{(\\w+|`[^`]*`)(?::(\\w+))?(\\.\\.\\.)?\\}")

// parts takes a key template apart.
func (f *file) parts(template string) []part {
	var found []part
	literal := func(text string) {
		if text != "" {
			found = append(found, part{literal: folded(text, f.keyCase)})
		}
	}
	at := 0
	for _, m := range hole.FindAllStringSubmatchIndex(template, -1) {
		literal(template[at:m[0]])
		p := part{variable: unquoted(template[m[2]:m[3]]), rest: m[6] >= 0, in: f.keyCase}
		if m[4] >= 0 {
			if p.in = template[m[4]:m[5]]; p.in[0] == '0' {
				p.width, _ = strconv.Atoi(p.in)
				p.in = ""
			}
		}
		found = append(found, p)
		at = m[1]
	}
	literal(template[at:])
	return found
}

// folded writes a text in a letter case.
func folded(text, in string) string {
	switch in {
	case "lower":
		return strings.ToLower(text)
	case "upper":
		return strings.ToUpper(text)
	}
	return text
}

// held is a value as a key holds it at this part; as it is, if it is none that the key could hold.
func (p part) held(value string) string {
	if p.width > len(value) && strings.Trim(value, "0123456789") == "" {
		return strings.Repeat("0", p.width-len(value)) + value
	}
	return folded(value, p.in)
}

// single reports whether a template is one variable and nothing else, as a number key must be.
func single(template []part) bool { return len(template) == 1 && template[0].variable != "" }
