package expression

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/sim/dynamosim/values"
)

func attributes(t testing.TB) *Attributes {
	t.Helper()
	attrs, err := NewAttributes(map[string]string{"#a": "a", "#d": "a.b"}, values.Item{
		":s": &types.AttributeValueMemberS{Value: "x"}, ":n": &types.AttributeValueMemberN{Value: "1"},
		":l": &types.AttributeValueMemberL{}, ":ss": &types.AttributeValueMemberSS{Value: []string{"x"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return attrs
}

var seeds = []string{
	"a = :s", "((a = :s))", "NOT (a < :n OR b IN (:s, :n)) AND size(c.d[1]) >= :n", "attribute_type(a, :s)", "a BETWEEN :n AND :n",
	"contains(a, b",
	"SET a = if_not_exists(b, :n) + :n REMOVE c[0].d ADD e :ss DELETE f :ss", "SET a = list_append(:l, list_append(a, :l))",
	"SET #d = (:n - a)", "a, b[1], #a.c", "a[99999999999999999999]", "(", "",
}

func FuzzExpressionsNeverPanic(f *testing.F) {
	for _, text := range seeds {
		f.Add(text)
	}
	item := values.Item{
		"a": &types.AttributeValueMemberN{Value: "1"}, "f": &types.AttributeValueMemberSS{Value: []string{"x"}},
		"c": &types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberM{Value: values.Item{"d": &types.AttributeValueMemberS{Value: "y"}}}}},
	}
	f.Fuzz(func(t *testing.T, text string) {
		before := values.Clone(item)
		if c, err := ParseCondition("ConditionExpression", text, attributes(t)); err == nil {
			c.Holds(item)
			c.Holds(nil)
			c.TopLevelNames()
		}
		if k, err := ParseKeyCondition(text, "a", "b", attributes(t)); err == nil {
			k.HoldsSort(item)
		}
		if p, err := ParseProjection(text, attributes(t)); err == nil {
			p.Of(item)
		}
		if u, err := ParseUpdate(text, attributes(t)); err == nil {
			if _, err := u.Apply(item); err == nil {
				u.Apply(nil)
			}
		}
		if !values.Equal(item, before) {
			t.Errorf("%q changed the item it was applied to", text)
		}
	})
}

func TestReservedWordsAreReservedInAnyCase(t *testing.T) {
	for word, want := range map[string]bool{"name": true, "Status": true, "TTL": true, "zone": true, "memberCount": false, "pk": false} {
		if reserved(word) != want {
			t.Errorf("reserved(%q) is not %t", word, want)
		}
	}
}
