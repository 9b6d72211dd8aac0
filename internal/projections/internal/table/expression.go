package table

import (
	"maps"
	"regexp"
	"strconv"
	"strings"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
)

// SameAs are further conditions: that a row still holds in these attributes what was seen.
func (c *Expression) SameAs(seen Row, names ...string) (conditions string) {
	for _, name := range names {
		conditions += c.Same(name, attributes.FromTable(seen[name]))
	}
	return conditions
}

// Expression gathers the names and values of one request's expressions.
type Expression struct {
	Names  map[string]string
	Values map[string]ddb.AttributeValue
	known  map[string]string // attribute name: placeholder
}

// NewExpression returns an expression without names and values.
func NewExpression() *Expression { return &Expression{known: map[string]string{}} }

// Again is the same expression with values of its own, under the same placeholders. It takes no further names.
func (c *Expression) Again() *Expression {
	return &Expression{Names: c.Names, Values: maps.Clone(c.Values), known: c.known}
}

// Translator returns a function that translates parts of this expression into another one's placeholders.
func (c *Expression) Translator(other *Expression) func(part string) string {
	values := map[string]string{}
	return func(part string) string {
		return placeholder.ReplaceAllStringFunc(part, func(p string) string {
			if name, ok := c.Names[p]; ok {
				return other.Name(name)
			}
			if _, ok := values[p]; !ok {
				values[p] = other.Value(c.Values[p])
			}
			return values[p]
		})
	}
}

// NamesIn are the names of attributes in parts of the expression.
func (c *Expression) NamesIn(parts ...string) map[string]bool {
	names := map[string]bool{}
	for _, part := range parts {
		for _, p := range placeholder.FindAllString(part, -1) {
			if name, ok := c.Names[p]; ok {
				names[name] = true
			}
		}
	}
	return names
}

var placeholder = regexp.MustCompile(`#n[0-9]+|:v[0-9]+`)

// Name returns the placeholder of an attribute name.
func (c *Expression) Name(attribute string) string {
	if p, ok := c.known[attribute]; ok {
		return p
	}
	if c.Names == nil {
		c.Names = map[string]string{}
	}
	p := "#n" + strconv.Itoa(len(c.Names))
	c.Names[p], c.known[attribute] = attribute, p
	return p
}

// Value returns a new placeholder for a value.
func (c *Expression) Value(v ddb.AttributeValue) string {
	if c.Values == nil {
		c.Values = map[string]ddb.AttributeValue{}
	}
	p := ":v" + strconv.Itoa(len(c.Values))
	c.Values[p] = v
	return p
}

// Format writes an expression: %n takes an attribute name (a string), %v a value, %s a part that is written already.
func (c *Expression) Format(format string, args ...any) string {
	var b strings.Builder
	for {
		before, after, ok := strings.Cut(format, "%")
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		switch after[0] {
		case 'n':
			b.WriteString(c.Name(args[0].(string)))
		case 'v':
			b.WriteString(c.Value(args[0].(ddb.AttributeValue)))
		case 's':
			b.WriteString(args[0].(string))
		}
		args, format = args[1:], after[1:]
	}
}

// List writes attribute names one behind the other.
func (c *Expression) List(attributes []string) string {
	names := make([]string, len(attributes))
	for i, name := range attributes {
		names[i] = c.Name(name)
	}
	return strings.Join(names, ", ")
}

// Same is a further condition: that an attribute still holds what was seen.
func (c *Expression) Same(attribute string, seen change.Value) string {
	if seen.Kind() == change.KindAbsent {
		return c.Format(" AND attribute_not_exists(%n)", attribute)
	}
	return c.Format(" AND %n = %v", attribute, attributes.ToTable(seen))
}

// Whole makes a condition of further ones.
func Whole(further string) string { return strings.TrimPrefix(further, " AND ") }
