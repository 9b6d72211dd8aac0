// Package keys reads the key templates of a rule file anew, for the oracle: it shares no code with the rules.
package keys

import (
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
)

// The longest keys that DynamoDB allows, in bytes.
const (
	partitionMax = 2048
	sortMax      = 1024
)

// Shape is what the keys of an entity look like.
type Shape struct {
	Names     []string // of the variables, in the order in which they first stand
	forms     map[string]form
	templates [2]template
	kinds     [2]change.Kind // of the table's keys; absent for no sort key
}

// template is one of a shape's, with the pattern that finds its variables in a key.
type template struct {
	pieces  []piece
	pattern *regexp.Regexp
}

// piece is a constant, or a variable.
type piece struct {
	constant, variable string
	rest               bool // the variable takes what is left of the key
	form               form
}

// form is how a key holds a value: "lower", "upper", or a number padded to a width.
type form struct {
	in    string
	width int
}

// NewShape reads an entity's two templates; the second is "" for a table without a sort key. in is the table's case.
func NewShape(partition, sort, in string, kinds [2]change.Kind) *Shape {
	s := &Shape{kinds: kinds, forms: map[string]form{}}
	for i, text := range []string{partition, sort} {
		all := pieces(text)
		for k := range all {
			p := &all[k]
			if p.form == (form{}) {
				p.form.in = in
			}
			p.constant = fold(p.constant, p.form.in)
			if s.forms[p.variable] = p.form; p.variable != "" && !slices.Contains(s.Names, p.variable) {
				s.Names = append(s.Names, p.variable)
			}
		}
		s.templates[i] = template{all, pattern(all)}
	}
	return s
}

// pattern is a template as a regular expression: each variable takes as little as it can.
func pattern(all []piece) *regexp.Regexp {
	text := ""
	for _, p := range all {
		switch {
		case p.constant != "":
			text += regexp.QuoteMeta(p.constant)
		case p.form.width > 0:
			text += fmt.Sprintf("([0-9]{%d})", p.form.width)
		case p.rest:
			text += "(.+)"
		default:
			text += "([^#]+?)"
		}
	}
	return regexp.MustCompile("(?s)^" + text + "$")
}

// pieces takes a template apart.
func pieces(text string) []piece {
	var all []piece
	constant := ""
	for text != "" {
		switch {
		case strings.HasPrefix(text, `\${`):
			constant, text = constant+"${", text[3:]
		case len(text) > 1 && text[0] == '\\' && strings.IndexByte(`\<>{}%$:`, text[1]) >= 0:
			constant, text = constant+text[1:2], text[2:]
		case strings.HasPrefix(text, "${"):
			if constant != "" {
				all, constant = append(all, piece{constant: constant}), ""
			}
			inner := text[2:]
			if inner[0] == '`' {
				inner = inner[1+strings.Index(inner[1:], "`"):]
			}
			behind := inner[1+strings.Index(inner, "}"):]
			inner = text[2 : len(text)-len(behind)-1]
			inner, rest := strings.CutSuffix(inner, "...")
			p := piece{rest: rest}
			if at := strings.LastIndexByte(inner, ':'); at > strings.LastIndexByte(inner, '`') {
				p.form.in, inner = inner[at+1:], inner[:at]
				if width, err := strconv.Atoi(p.form.in); err == nil {
					p.form = form{width: width}
				}
			}
			p.variable = strings.Trim(inner, "`")
			all, text = append(all, p), behind
		default:
			constant, text = constant+text[:1], text[1:]
		}
	}
	if constant != "" {
		all = append(all, piece{constant: constant})
	}
	return all
}

// Read returns the values of the variables in a key, if it is one of the shape.
func (s *Shape) Read(key change.Key) (map[string]string, bool) {
	values := map[string]string{}
	ok := s.templates[0].read(key.Partition, values) && s.templates[1].read(key.Sort, values)
	return values, ok
}

func (t template) read(text string, values map[string]string) bool {
	found := t.pattern.FindStringSubmatch(text)
	if found == nil {
		return false
	}
	for _, p := range t.pieces {
		if p.variable == "" {
			continue
		}
		found = found[1:]
		value, ok := p.form.read(found[0])
		if known, twice := values[p.variable]; !ok || twice && known != value {
			return false
		}
		values[p.variable] = value
	}
	return true
}

// fold writes a text in a case.
func fold(text, in string) string {
	switch in {
	case "lower":
		return strings.ToLower(text)
	case "upper":
		return strings.ToUpper(text)
	}
	return text
}

// read returns the value of which a key holds this text: digits, if it is a padded number.
func (f form) read(text string) (string, bool) {
	if f.width == 0 {
		return text, fold(text, f.in) == text
	}
	number, ok := new(big.Int).SetString(text, 10)
	return number.String(), ok
}

// Form is a value as a key holds it, but for zeros before a number. bad is the code of what is parked if no key can.
func (s *Shape) Form(variable, value string) (text, bad string) {
	f := s.forms[variable]
	if f.width == 0 {
		return fold(value, f.in), ""
	}
	number, err := decimal.Parse(value)
	if err != nil {
		return "", "value.type"
	}
	whole, ok := new(big.Int).SetString(number.String(), 10)
	if !ok || whole.Sign() < 0 || len(whole.String()) > f.width {
		return "", "number.width"
	}
	return whole.String(), ""
}

// Case is in which letters keys hold a variable; "" if as it is.
func (s *Shape) Case(variable string) string { return s.forms[variable].in }

// IsPadded reports whether keys hold a variable as a padded number.
func (s *Shape) IsPadded(variable string) bool { return s.forms[variable].width > 0 }

// Write makes a key of values. bad is the code of what is parked if they make none.
func (s *Shape) Write(values map[string]string) (key change.Key, bad string) {
	for i, template := range s.templates {
		if s.kinds[i] != change.KindNumber {
			continue
		}
		number, err := decimal.Parse(values[template.pieces[0].variable])
		if err != nil {
			return change.Key{}, "value.type"
		}
		values[template.pieces[0].variable] = number.String()
	}
	for _, name := range s.Names {
		text, bad := s.Form(name, values[name])
		if bad != "" {
			return change.Key{}, bad
		}
		values[name] = text
	}
	key = change.Key{Partition: write(s.templates[0], values), Sort: write(s.templates[1], values)}
	if len(key.Partition) > partitionMax || len(key.Sort) > sortMax {
		return change.Key{}, "key.too_long"
	}
	back, ok := s.Read(key)
	for name, value := range back {
		ok = ok && values[name] == value
	}
	if !ok {
		return change.Key{}, "key.smuggled"
	}
	return key, ""
}

func write(t template, values map[string]string) string {
	text := ""
	for _, p := range t.pieces {
		value := values[p.variable]
		text += p.constant + strings.Repeat("0", max(0, p.form.width-len(value))) + value
	}
	return text
}
