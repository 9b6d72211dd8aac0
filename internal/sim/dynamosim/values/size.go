package values

import (
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Size returns an item's size in bytes as DynamoDB bills it (developer guide,
// "DynamoDB item sizes and formats"): names and values, with numbers at one
// byte per two significant digits plus one.
func Size(item Item) int {
	size := 0
	for name, av := range item {
		size += len(name) + SizeOf(av)
	}
	return size
}

// SizeOf returns one value's size in bytes, without its name. A list or map
// costs three bytes, and one more for each element.
func SizeOf(av types.AttributeValue) int {
	size := 0
	switch v := av.(type) {
	case *types.AttributeValueMemberS:
		return len(v.Value)
	case *types.AttributeValueMemberN:
		return numberSize(v.Value)
	case *types.AttributeValueMemberB:
		return len(v.Value)
	case *types.AttributeValueMemberBOOL, *types.AttributeValueMemberNULL:
		return 1
	case *types.AttributeValueMemberSS:
		for _, m := range v.Value {
			size += len(m)
		}
	case *types.AttributeValueMemberNS:
		for _, m := range v.Value {
			size += numberSize(m)
		}
	case *types.AttributeValueMemberBS:
		for _, m := range v.Value {
			size += len(m)
		}
	case *types.AttributeValueMemberL:
		size = 3
		for _, e := range v.Value {
			size += 1 + SizeOf(e)
		}
	case *types.AttributeValueMemberM:
		size = 3
		for name, f := range v.Value {
			size += 1 + len(name) + SizeOf(f)
		}
	}
	return size
}

// numberSize takes a normalized number. A minus sign costs one byte more, as
// seen in ConsumedCapacity; the guide calls the formula approximate.
func numberSize(text string) int {
	digits := strings.TrimPrefix(text, "-")
	size := 1 + len(text) - len(digits)
	digits = strings.Replace(digits, ".", "", 1)
	if !strings.Contains(text, ".") {
		digits = strings.TrimRight(digits, "0")
	}
	digits = strings.TrimLeft(digits, "0")
	return size + (len(digits)+1)/2
}

// Length is what the expression function size returns: the length of a string
// (in characters) or binary, or the number of elements of a set, list or map.
// ok is false for other types.
func Length(av types.AttributeValue) (n int, ok bool) {
	switch v := av.(type) {
	case *types.AttributeValueMemberS:
		return utf8.RuneCountInString(v.Value), true
	case *types.AttributeValueMemberB:
		return len(v.Value), true
	case *types.AttributeValueMemberSS:
		return len(v.Value), true
	case *types.AttributeValueMemberNS:
		return len(v.Value), true
	case *types.AttributeValueMemberBS:
		return len(v.Value), true
	case *types.AttributeValueMemberL:
		return len(v.Value), true
	case *types.AttributeValueMemberM:
		return len(v.Value), true
	}
	return 0, false
}
