package conformance

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

func (s *suite) testLimits(t *testing.T) {
	long := strings.Repeat("x", 400<<10)
	for _, c := range []struct {
		name    string
		item    func(pk string) item
		refused bool
	}{
		{"no sort key", func(pk string) item { return item{"pk": str(pk)} }, true},
		{"a sort key of the wrong type", func(pk string) item { return item{"pk": str(pk), "sk": num("1")} }, true},
		{"an empty sort key", func(pk string) item { return key(pk, "") }, true},
		{"an empty partition key", func(string) item { return key("", "a") }, true},
		{"a partition key of 2048 bytes", func(pk string) item { return key((pk + long)[:2048], "a") }, false},
		{"a partition key of 2049 bytes", func(pk string) item { return key((pk + long)[:2049], "a") }, true},
		{"a sort key of 1024 bytes", func(pk string) item { return key(pk, long[:1024]) }, false},
		{"a sort key of 1025 bytes", func(pk string) item { return key(pk, long[:1025]) }, true},
		{"an empty string set", func(pk string) item { return with(pk, "a", item{"v": texts()}) }, true},
		{"an empty number set in a map", func(pk string) item { return with(pk, "a", item{"v": fields(item{"v": numberSet()})}) }, true},
		{"a set with a member twice", func(pk string) item { return with(pk, "a", item{"v": texts("a", "a")}) }, true},
		{"a number set with equal members", func(pk string) item { return with(pk, "a", item{"v": numberSet("1", "1.0")}) }, true},
		{"a set with an empty string", func(pk string) item { return with(pk, "a", item{"v": texts("")}) }, false},
		{"an empty list", func(pk string) item { return with(pk, "a", item{"v": list()}) }, false},
		{"a number of 38 digits", func(pk string) item { return with(pk, "a", item{"v": num(digits38)}) }, false},
		{"a number of 39 digits", func(pk string) item { return with(pk, "a", item{"v": num(digits38 + "9")}) }, true},
		{"a number of 39 digits that ends with 0", func(pk string) item { return with(pk, "a", item{"v": num(digits38 + "0")}) }, false},
		{"the greatest number", func(pk string) item {
			return with(pk, "a", item{"v": num("9.9999999999999999999999999999999999999E125")})
		}, false},
		{"a number too great", func(pk string) item { return with(pk, "a", item{"v": num("1E126")}) }, true},
		{"the smallest number", func(pk string) item { return with(pk, "a", item{"v": num("1E-130")}) }, false},
		{"a number too small", func(pk string) item { return with(pk, "a", item{"v": num("1E-131")}) }, true},
		{"no number", func(pk string) item { return with(pk, "a", item{"v": num("ten")}) }, true},
		{"an empty number", func(pk string) item { return with(pk, "a", item{"v": num("")}) }, true},
		{"an infinite number", func(pk string) item { return with(pk, "a", item{"v": num("Infinity")}) }, true},
		{"32 levels, the item among them", func(pk string) item { return with(pk, "a", item{"v": nested(31)}) }, false},
		{"33 levels, the item among them", func(pk string) item { return with(pk, "a", item{"v": nested(32)}) }, true},
		{"an item of 400 KB", func(pk string) item { return with(pk, "a", item{"v": str(long[:len(long)-len(pk)-6])}) }, false},
		{"an item of 400 KB and a byte", func(pk string) item { return with(pk, "a", item{"v": str(long[:len(long)-len(pk)-5])}) }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			it := c.item(partition(t))
			_, err := s.Tables.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &s.texts, Item: it})
			if c.refused {
				wantInvalid(t, err)
				return
			}
			wantNoError(t, err)
		})
	}
	t.Run("an update that makes the item too large", func(t *testing.T) {
		pk, text := partition(t), "SET w = :v"
		s.put(t, with(pk, "a", item{"v": str(long[:300<<10])}))
		_, err := s.Tables.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: &s.texts, Key: key(pk, "a"),
			UpdateExpression: &text, ExpressionAttributeValues: item{":v": str(long[:200<<10])}})
		wantInvalid(t, err)
	})
	t.Run("a key with more than the key attributes", func(t *testing.T) {
		_, err := s.Tables.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &s.texts, Key: with("a", "b", item{"c": str("d")})})
		wantInvalid(t, err)
		_, err = s.Tables.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &s.texts, Key: item{"pk": str("a")}})
		wantInvalid(t, err)
	})
	t.Run("values without an expression", func(t *testing.T) {
		_, err := s.Tables.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &s.texts, Item: key(partition(t), "b"),
			ExpressionAttributeValues: item{":v": str("x")}})
		wantInvalid(t, err)
	})
}

// nested returns a value with this many levels of lists.
func nested(levels int) value {
	v := list()
	for range levels - 1 {
		v = list(v)
	}
	return v
}
