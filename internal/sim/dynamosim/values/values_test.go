package values

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func TestSizesFollowTheDeveloperGuide(t *testing.T) {
	s := func(text string) types.AttributeValue { return &types.AttributeValueMemberS{Value: text} }
	n := func(text string) types.AttributeValue { return &types.AttributeValueMemberN{Value: text} }
	for _, c := range []struct {
		name string
		av   types.AttributeValue
		want int
	}{
		{"ASCII", s("abc"), 3},
		{"UTF-8", s("\u00e9"), 2},
		{"zero", n("0"), 1},
		{"two digits", n("27"), 2},
		{"a negative number", n("-27"), 3},
		{"trailing zeros", n("1000"), 2},
		{"leading zeros", n("0.005"), 2},
		{"38 digits", n(strings.Repeat("9", 38)), 20},
		{"null", &types.AttributeValueMemberNULL{Value: true}, 1},
		{"an empty list", &types.AttributeValueMemberL{}, 3},
		{"a list", &types.AttributeValueMemberL{Value: []types.AttributeValue{s("abc"), n("1")}}, 3 + 1 + 3 + 1 + 2},
		{"a map", &types.AttributeValueMemberM{Value: Item{"key": s("v")}}, 3 + 1 + 3 + 1},
		{"a set", &types.AttributeValueMemberSS{Value: []string{"ab", "c"}}, 3},
	} {
		if got := SizeOf(c.av); got != c.want {
			t.Errorf("%s: got %d bytes, want %d", c.name, got, c.want)
		}
	}
	if got := Size(Item{"name": s("abc")}); got != 7 {
		t.Errorf("an item: got %d bytes, want 7", got)
	}
}
