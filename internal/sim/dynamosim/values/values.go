// Package values is the simulated DynamoDB's knowledge of attribute values:
// their normal form, equality, order and size. It works on the AWS SDK's types
// and imports only internal/decimal beside them. It keeps the simulator's
// promise that what it accepts, stores and bills is what AWS documents.
package values

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/dynamill/dynamill/internal/decimal"
)

// Item is one item, or any map of attribute values.
type Item = map[string]types.AttributeValue

// DepthMax is how deep lists and maps may nest, the item itself counted
// (developer guide, "Quotas").
const DepthMax = 32

// Invalid returns DynamoDB's ValidationException.
func Invalid(format string, args ...any) error {
	return &smithy.GenericAPIError{Code: "ValidationException", Message: fmt.Sprintf(format, args...), Fault: smithy.FaultClient}
}

// TypeOf returns the type's descriptor: S, N, B, BOOL, NULL, L, M, SS, NS or BS; "" for nil.
func TypeOf(av types.AttributeValue) string {
	switch av.(type) {
	case *types.AttributeValueMemberS:
		return "S"
	case *types.AttributeValueMemberN:
		return "N"
	case *types.AttributeValueMemberB:
		return "B"
	case *types.AttributeValueMemberBOOL:
		return "BOOL"
	case *types.AttributeValueMemberNULL:
		return "NULL"
	case *types.AttributeValueMemberL:
		return "L"
	case *types.AttributeValueMemberM:
		return "M"
	case *types.AttributeValueMemberSS:
		return "SS"
	case *types.AttributeValueMemberNS:
		return "NS"
	case *types.AttributeValueMemberBS:
		return "BS"
	}
	return ""
}

// Clone copies an item as CloneValue copies values; nil for nil.
func Clone(item Item) Item {
	copied := maps.Clone(item)
	for name, av := range item {
		switch av.(type) {
		case *types.AttributeValueMemberS, *types.AttributeValueMemberN: // most values
		default:
			copied[name] = CloneValue(av)
		}
	}
	return copied
}

// CloneValue copies a value deeply. Texts, numbers, booleans and NULL are shared: the simulator and its callers replace such a value, they
// do not change it.
func CloneValue(av types.AttributeValue) types.AttributeValue {
	switch v := av.(type) {
	case *types.AttributeValueMemberS, *types.AttributeValueMemberN, *types.AttributeValueMemberBOOL, *types.AttributeValueMemberNULL:
		return v
	case *types.AttributeValueMemberB:
		return &types.AttributeValueMemberB{Value: bytes.Clone(v.Value)}
	case *types.AttributeValueMemberSS:
		return &types.AttributeValueMemberSS{Value: slices.Clone(v.Value)}
	case *types.AttributeValueMemberNS:
		return &types.AttributeValueMemberNS{Value: slices.Clone(v.Value)}
	case *types.AttributeValueMemberBS:
		members := make([][]byte, len(v.Value))
		for i, b := range v.Value {
			members[i] = bytes.Clone(b)
		}
		return &types.AttributeValueMemberBS{Value: members}
	case *types.AttributeValueMemberL:
		elements := make([]types.AttributeValue, len(v.Value))
		for i, e := range v.Value {
			elements[i] = CloneValue(e)
		}
		return &types.AttributeValueMemberL{Value: elements}
	case *types.AttributeValueMemberM:
		return &types.AttributeValueMemberM{Value: Clone(v.Value)}
	}
	return nil
}

// Equal compares two normalized items deeply.
func Equal(a, b Item) bool {
	if len(a) != len(b) {
		return false
	}
	for name, av := range a {
		bv, ok := b[name]
		if !ok || !EqualValues(av, bv) {
			return false
		}
	}
	return true
}

// EqualValues compares two normalized values deeply. Values of different types are never equal.
func EqualValues(a, b types.AttributeValue) bool {
	if a == nil || b == nil || TypeOf(a) != TypeOf(b) {
		return false
	}
	switch a := a.(type) {
	case *types.AttributeValueMemberS:
		return a.Value == b.(*types.AttributeValueMemberS).Value
	case *types.AttributeValueMemberN:
		return a.Value == b.(*types.AttributeValueMemberN).Value
	case *types.AttributeValueMemberB:
		return bytes.Equal(a.Value, b.(*types.AttributeValueMemberB).Value)
	case *types.AttributeValueMemberBOOL:
		return a.Value == b.(*types.AttributeValueMemberBOOL).Value
	case *types.AttributeValueMemberNULL:
		return true
	case *types.AttributeValueMemberSS:
		return slices.Equal(a.Value, b.(*types.AttributeValueMemberSS).Value)
	case *types.AttributeValueMemberNS:
		return slices.Equal(a.Value, b.(*types.AttributeValueMemberNS).Value)
	case *types.AttributeValueMemberBS:
		return slices.EqualFunc(a.Value, b.(*types.AttributeValueMemberBS).Value, bytes.Equal)
	case *types.AttributeValueMemberL:
		return slices.EqualFunc(a.Value, b.(*types.AttributeValueMemberL).Value, EqualValues)
	case *types.AttributeValueMemberM:
		return Equal(a.Value, b.(*types.AttributeValueMemberM).Value)
	}
	return false
}

// Compare orders two normalized strings, numbers or binaries; ok is false if
// they are of different types or of one that has no order.
func Compare(a, b types.AttributeValue) (order int, ok bool) {
	switch a := a.(type) {
	case *types.AttributeValueMemberS:
		if b, same := b.(*types.AttributeValueMemberS); same {
			return strings.Compare(a.Value, b.Value), true
		}
	case *types.AttributeValueMemberN:
		if b, same := b.(*types.AttributeValueMemberN); same {
			return compareNumbers(a.Value, b.Value), true
		}
	case *types.AttributeValueMemberB:
		if b, same := b.(*types.AttributeValueMemberB); same {
			return bytes.Compare(a.Value, b.Value), true
		}
	}
	return 0, false
}

// compareNumbers takes normalized numbers, which always parse.
func compareNumbers(a, b string) int {
	x, _ := decimal.Parse(a)
	y, _ := decimal.Parse(b)
	return x.Cmp(y)
}
