// Package keys reads the key templates of a rule file anew, for the oracle: it shares no code with the rules.
package keys

import (
	"slices"
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
	templates [2][]piece
	kinds     [2]change.Kind // of the table's keys; absent for no sort key
}

// piece is a constant, or a variable.
type piece struct {
	constant, variable string
	rest               bool // the variable takes what is left of the key
}

// NewShape reads an entity's two templates; the second is "" for a table without a sort key.
func NewShape(partition, sort string, kinds [2]change.Kind) *Shape {
	s := &Shape{kinds: kinds}
	for i, text := range []string{partition, sort} {
		s.templates[i] = pieces(text)
		for _, p := range s.templates[i] {
			if p.variable != "" && !slices.Contains(s.Names, p.variable) {
				s.Names = append(s.Names, p.variable)
			}
		}
	}
	return s
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
			name, rest := strings.CutSuffix(inner, "...")
			all, text = append(all, piece{variable: strings.Trim(name, "`"), rest: rest}), behind
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
	ok := read(s.templates[0], key.Partition, values) && read(s.templates[1], key.Sort, values)
	return values, ok
}

func read(template []piece, text string, values map[string]string) bool {
	for i, p := range template {
		if p.constant != "" {
			rest, ok := strings.CutPrefix(text, p.constant)
			if !ok {
				return false
			}
			text = rest
			continue
		}
		end := p.end(template[i+1:], text)
		if end < 1 || !p.rest && strings.Contains(text[:end], "#") {
			return false
		}
		value := text[:end]
		if known, twice := values[p.variable]; twice && known != value {
			return false
		}
		values[p.variable], text = value, text[end:]
	}
	return text == ""
}

// end says where the value at the beginning of text ends: before the constant that is next. The last constant stands at the end.
func (piece) end(behind []piece, text string) int {
	switch {
	case len(behind) == 0:
		return len(text)
	case len(behind) == 1:
		return len(text) - len(behind[0].constant)
	case text == "":
		return -1
	}
	return 1 + strings.Index(text[1:], behind[0].constant)
}

// Write makes a key of values. bad is the code of what is parked if they make none.
func (s *Shape) Write(values map[string]string) (key change.Key, bad string) {
	for i, template := range s.templates {
		if s.kinds[i] != change.KindNumber {
			continue
		}
		number, err := decimal.Parse(values[template[0].variable])
		if err != nil {
			return change.Key{}, "value.type"
		}
		values[template[0].variable] = number.String()
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

func write(template []piece, values map[string]string) string {
	text := ""
	for _, p := range template {
		text += p.constant + values[p.variable]
	}
	return text
}
