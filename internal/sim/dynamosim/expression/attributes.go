// Package expression parses and evaluates DynamoDB's expressions: conditions,
// filters, key conditions, projections and updates. It is pure: text and items
// in, a verdict or a new item out. It imports only dynamosim/values and
// internal/decimal beside the AWS SDK's types, and refuses, with a
// ValidationException, what AWS documents as refused.
package expression

import (
	"sort"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/sim/dynamosim/values"
)

// textBytesMax bounds an expression (developer guide, "Quotas": 4 KB).
const textBytesMax = 4096

// Attributes are the ExpressionAttributeNames and ExpressionAttributeValues of
// one request. They remember what the request's expressions use.
type Attributes struct {
	names      map[string]string
	values     values.Item
	usedNames  map[string]bool
	usedValues map[string]bool
}

// NewAttributes normalizes the values and refuses placeholders that are malformed.
// Maps may be nil; maps that are empty but not nil are refused, as AWS does.
func NewAttributes(names map[string]string, vals values.Item) (*Attributes, error) {
	if names != nil && len(names) == 0 {
		return nil, values.Invalid("ExpressionAttributeNames must not be empty")
	}
	if vals != nil && len(vals) == 0 {
		return nil, values.Invalid("ExpressionAttributeValues must not be empty")
	}
	for placeholder := range names {
		if !isPlaceholder(placeholder, '#') {
			return nil, values.Invalid("ExpressionAttributeNames contains invalid key: Syntax error; key: %q", placeholder)
		}
	}
	normal := make(values.Item, len(vals))
	for placeholder, av := range vals {
		if !isPlaceholder(placeholder, ':') {
			return nil, values.Invalid("ExpressionAttributeValues contains invalid key: Syntax error; key: %q", placeholder)
		}
		v, err := values.NormalizeValue(av)
		if err != nil {
			return nil, values.Invalid("ExpressionAttributeValues contains invalid value: %v for key %s", err, placeholder)
		}
		normal[placeholder] = v
	}
	return &Attributes{names: names, values: normal, usedNames: map[string]bool{}, usedValues: map[string]bool{}}, nil
}

func isPlaceholder(text string, mark byte) bool {
	if len(text) < 2 || text[0] != mark {
		return false
	}
	for i := 1; i < len(text); i++ {
		if !isWord(text[i]) {
			return false
		}
	}
	return true
}

// CheckUsed refuses names and values that no expression of the request used.
func (a *Attributes) CheckUsed() error {
	if unused := missing(a.names, a.usedNames); unused != "" {
		return values.Invalid("Value provided in ExpressionAttributeNames unused in expressions: keys: {%s}", unused)
	}
	if unused := missing(a.values, a.usedValues); unused != "" {
		return values.Invalid("Value provided in ExpressionAttributeValues unused in expressions: keys: {%s}", unused)
	}
	return nil
}

func missing[V any](given map[string]V, used map[string]bool) string {
	var unused []string
	for placeholder := range given {
		if !used[placeholder] {
			unused = append(unused, placeholder)
		}
	}
	sort.Strings(unused)
	return strings.Join(unused, ", ")
}

func (a *Attributes) name(placeholder string) (string, bool) {
	a.usedNames[placeholder] = true
	name, ok := a.names[placeholder]
	return name, ok
}

func (a *Attributes) value(placeholder string) (types.AttributeValue, bool) {
	a.usedValues[placeholder] = true
	av, ok := a.values[placeholder]
	return av, ok
}
