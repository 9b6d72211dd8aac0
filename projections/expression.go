package projections

import (
	"math"
	"strconv"
	"strings"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/projections/internal/plan"
)

// expression gathers the names and values of one request's expressions.
type expression struct {
	names  map[string]string
	values map[string]ddb.AttributeValue
	known  map[string]string // attribute name: placeholder
}

func newExpression() *expression { return &expression{known: map[string]string{}} }

// name returns the placeholder of an attribute name.
func (c *expression) name(attribute string) string {
	if p, ok := c.known[attribute]; ok {
		return p
	}
	if c.names == nil {
		c.names = map[string]string{}
	}
	p := "#n" + strconv.Itoa(len(c.names))
	c.names[p], c.known[attribute] = attribute, p
	return p
}

// value returns a new placeholder for a value.
func (c *expression) value(v ddb.AttributeValue) string {
	if c.values == nil {
		c.values = map[string]ddb.AttributeValue{}
	}
	p := ":v" + strconv.Itoa(len(c.values))
	c.values[p] = v
	return p
}

// sprintf writes an expression: %n takes an attribute name (a string), %v a value, %s a part that is written already.
func (c *expression) sprintf(format string, args ...any) string {
	var b strings.Builder
	for {
		before, after, ok := strings.Cut(format, "%")
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		switch after[0] {
		case 'n':
			b.WriteString(c.name(args[0].(string)))
		case 'v':
			b.WriteString(c.value(args[0].(ddb.AttributeValue)))
		case 's':
			b.WriteString(args[0].(string))
		}
		args, format = args[1:], after[1:]
	}
}

// list writes attribute names one behind the other.
func (c *expression) list(attributes []string) string {
	names := make([]string, len(attributes))
	for i, name := range attributes {
		names[i] = c.name(name)
	}
	return strings.Join(names, ", ")
}

// unstampedOr is the condition that the stamp is not one of this context, or not higher
// than the version of a count. A text above every count of the same rules epoch, or
// above every epoch, is no stamp.
func unstampedOr(c *expression, attribute string, s plan.Stamp) string {
	n := c.name(attribute)
	text := func(v plan.Version) ddb.AttributeValue { return textValue(s.Context + " " + string(v) + " ~") }
	epoch := s.Version.RulesEpoch()
	return "(attribute_not_exists(" + n + ") OR NOT begins_with(" + n + ", " + c.value(textValue(s.Context+" ")) +
		") OR " + n + " <= " + c.value(text(s.Version)) +
		" OR " + n + " BETWEEN " + c.value(text(plan.VersionOf(epoch, math.MaxInt64))) + " AND " + c.value(text(plan.VersionAt(epoch, change.Position{})+"~")) +
		" OR " + n + " > " + c.value(text(plan.VersionAt(plan.EpochMax, change.Position{})+"~")) + ")"
}

// same is a further condition: that an attribute still holds what was seen.
func (c *expression) same(attribute string, seen change.Value) string {
	if seen.Kind() == change.KindAbsent {
		return c.sprintf(" AND attribute_not_exists(%n)", attribute)
	}
	return c.sprintf(" AND %n = %v", attribute, attributes.ToTable(seen))
}

// whole makes a condition of further ones.
func whole(further string) string { return strings.TrimPrefix(further, " AND ") }
