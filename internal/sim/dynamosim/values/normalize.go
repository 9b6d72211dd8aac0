package values

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/decimal"
)

// Normalize returns a deep copy in which numbers are in DynamoDB's normal form
// and sets are sorted, or a ValidationException for what DynamoDB refuses.
func Normalize(item Item) (Item, error) {
	normal := make(Item, len(item))
	for name, av := range item {
		if name == "" {
			return nil, Invalid("One or more parameter values were invalid: an attribute name must not be empty")
		}
		v, err := normalize(av, 1)
		if err != nil {
			return nil, err
		}
		normal[name] = v
	}
	return normal, nil
}

// NormalizeValue is Normalize for one value.
func NormalizeValue(av types.AttributeValue) (types.AttributeValue, error) { return normalize(av, 1) }

var errTooDeep = Invalid("Nesting Levels have exceeded supported limits")

func normalize(av types.AttributeValue, depth int) (types.AttributeValue, error) {
	switch v := av.(type) {
	case *types.AttributeValueMemberS:
		if !utf8.ValidString(v.Value) {
			return nil, Invalid("One or more parameter values were invalid: a string is not valid UTF-8")
		}
		return &types.AttributeValueMemberS{Value: v.Value}, nil
	case *types.AttributeValueMemberN:
		n, err := Number(v.Value)
		return &types.AttributeValueMemberN{Value: n}, err
	case *types.AttributeValueMemberB:
		return &types.AttributeValueMemberB{Value: bytes.Clone(v.Value)}, nil
	case *types.AttributeValueMemberBOOL:
		return &types.AttributeValueMemberBOOL{Value: v.Value}, nil
	case *types.AttributeValueMemberNULL:
		if !v.Value {
			return nil, Invalid("One or more parameter values were invalid: Null attribute value types must have the value of true")
		}
		return &types.AttributeValueMemberNULL{Value: true}, nil
	case *types.AttributeValueMemberL:
		if depth >= DepthMax {
			return nil, errTooDeep
		}
		elements := make([]types.AttributeValue, len(v.Value))
		for i, e := range v.Value {
			var err error
			if elements[i], err = normalize(e, depth+1); err != nil {
				return nil, err
			}
		}
		return &types.AttributeValueMemberL{Value: elements}, nil
	case *types.AttributeValueMemberM:
		if depth >= DepthMax {
			return nil, errTooDeep
		}
		fields := make(Item, len(v.Value))
		for name, f := range v.Value {
			field, err := normalize(f, depth+1)
			if err != nil {
				return nil, err
			}
			fields[name] = field
		}
		return &types.AttributeValueMemberM{Value: fields}, nil
	}
	return normalizeSet(av)
}

func normalizeSet(av types.AttributeValue) (types.AttributeValue, error) {
	switch v := av.(type) {
	case *types.AttributeValueMemberSS:
		members := slices.Clone(v.Value)
		slices.Sort(members)
		if err := checkSet(members, func(a, b string) bool { return a == b }); err != nil {
			return nil, err
		}
		return &types.AttributeValueMemberSS{Value: members}, nil
	case *types.AttributeValueMemberNS:
		members := make([]string, len(v.Value))
		for i, m := range v.Value {
			var err error
			if members[i], err = Number(m); err != nil {
				return nil, err
			}
		}
		slices.SortFunc(members, compareNumbers)
		if err := checkSet(members, func(a, b string) bool { return a == b }); err != nil {
			return nil, err
		}
		return &types.AttributeValueMemberNS{Value: members}, nil
	case *types.AttributeValueMemberBS:
		members := make([][]byte, len(v.Value))
		for i, m := range v.Value {
			members[i] = bytes.Clone(m)
		}
		slices.SortFunc(members, bytes.Compare)
		if err := checkSet(members, bytes.Equal); err != nil {
			return nil, err
		}
		return &types.AttributeValueMemberBS{Value: members}, nil
	}
	return nil, Invalid("Supplied AttributeValue is empty, must contain exactly one of the supported datatypes")
}

// CheckDepth refuses an item that nests deeper than DepthMax, as an update may leave it.
func CheckDepth(item Item) error {
	for _, av := range item {
		if depthOf(av) >= DepthMax {
			return errTooDeep
		}
	}
	return nil
}

// depthOf counts the lists and maps around the innermost value.
func depthOf(av types.AttributeValue) int {
	deepest := 0
	switch v := av.(type) {
	case *types.AttributeValueMemberL:
		for _, e := range v.Value {
			deepest = max(deepest, depthOf(e))
		}
	case *types.AttributeValueMemberM:
		for _, f := range v.Value {
			deepest = max(deepest, depthOf(f))
		}
	default:
		return 0
	}
	return deepest + 1
}

func checkSet[T any](sorted []T, equal func(a, b T) bool) error {
	if len(sorted) == 0 {
		return Invalid("One or more parameter values were invalid: An set of values may not be empty")
	}
	for i := range len(sorted) - 1 {
		if equal(sorted[i], sorted[i+1]) {
			return Invalid("One or more parameter values were invalid: Input collection contains duplicates.")
		}
	}
	return nil
}

// Number returns a number in DynamoDB's normal form, or a ValidationException
// for a text that is no number or needs more than 38 digits.
func Number(text string) (string, error) {
	n, err := decimal.Parse(text)
	switch {
	case errors.Is(err, decimal.ErrInexact):
		return "", Invalid("Attempting to store more than 38 significant digits in a Number, or a magnitude beyond the supported range")
	case err != nil || strings.ContainsAny(text, "_ "):
		return "", Invalid("The parameter cannot be converted to a numeric value: %s", text)
	}
	return n.String(), nil
}
