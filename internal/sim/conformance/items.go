package conformance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

type (
	value = types.AttributeValue
	item  = map[string]value
)

func str(s string) value                { return &types.AttributeValueMemberS{Value: s} }
func num(n string) value                { return &types.AttributeValueMemberN{Value: n} }
func bin(b string) value                { return &types.AttributeValueMemberB{Value: []byte(b)} }
func boolean(b bool) value              { return &types.AttributeValueMemberBOOL{Value: b} }
func null() value                       { return &types.AttributeValueMemberNULL{Value: true} }
func list(vs ...value) value            { return &types.AttributeValueMemberL{Value: vs} }
func fields(m item) value               { return &types.AttributeValueMemberM{Value: m} }
func texts(members ...string) value     { return &types.AttributeValueMemberSS{Value: members} }
func numberSet(members ...string) value { return &types.AttributeValueMemberNS{Value: members} }
func binaries(members ...string) value {
	bs := make([][]byte, len(members))
	for i, m := range members {
		bs[i] = []byte(m)
	}
	return &types.AttributeValueMemberBS{Value: bs}
}

func key(pk, sk string) item { return item{"pk": str(pk), "sk": str(sk)} }

// with returns the item of this key with more attributes.
func with(pk, sk string, attributes item) item {
	it := key(pk, sk)
	for name, v := range attributes {
		it[name] = v
	}
	return it
}

// partition makes a partition key for this test alone.
func partition(t *testing.T) string { return strings.ReplaceAll(t.Name(), "/", ".") }

var ignoringSetOrder = cmp.Options{
	cmpopts.IgnoreUnexported(types.AttributeValueMemberS{}, types.AttributeValueMemberN{}, types.AttributeValueMemberB{},
		types.AttributeValueMemberBOOL{}, types.AttributeValueMemberNULL{}, types.AttributeValueMemberL{}, types.AttributeValueMemberM{},
		types.AttributeValueMemberSS{}, types.AttributeValueMemberNS{}, types.AttributeValueMemberBS{}),
	cmpopts.SortSlices(func(a, b string) bool { return a < b }),
	cmpopts.SortSlices(func(a, b []byte) bool { return string(a) < string(b) }),
	cmpopts.EquateEmpty(),
}

func wantItem(t *testing.T, got, want item) {
	t.Helper()
	if diff := cmp.Diff(want, got, ignoringSetOrder); diff != "" {
		t.Fatalf("item differs (-want +got):\n%s", diff)
	}
}

func (s *suite) put(t *testing.T, it item) {
	t.Helper()
	_, err := s.Tables.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &s.texts, Item: it})
	wantNoError(t, err)
}

func (s *suite) get(t *testing.T, k item) item {
	t.Helper()
	out, err := s.Tables.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &s.texts, Key: k, ConsistentRead: aws.Bool(true)})
	wantNoError(t, err)
	return out.Item
}

func (s *suite) testItems(t *testing.T) {
	t.Run("an item of every type comes back as it was put", func(t *testing.T) {
		it := with(partition(t), "a", item{
			"s": str("é"), "empty": str(""), "n": num("-1.5"), "b": bin("\x00\xff"), "yes": boolean(true), "nil": null(),
			"l": list(str("x"), list(), fields(item{})), "m": fields(item{"k": num("1")}), "ss": texts("b", "a"),
			"ns": numberSet("2", "1"), "bs": binaries("b", "a"), "noBytes": bin(""),
		})
		s.put(t, it)
		wantItem(t, s.get(t, key(partition(t), "a")), it)
	})
	t.Run("an item that does not exist is an empty reply", func(t *testing.T) {
		if got := s.get(t, key(partition(t), "none")); len(got) != 0 {
			t.Fatalf("got %v, want no item", got)
		}
	})
	t.Run("numbers come back in normal form", func(t *testing.T) {
		for given, want := range map[string]string{"1.50": "1.5", "007": "7", "1e3": "1000", "-0": "0", "0.000": "0", "5E-2": "0.05",
			"300.0":                                  "300",
			"12345678901234567890123456789012345678": "12345678901234567890123456789012345678"} {
			s.put(t, with(partition(t), "a", item{"n": num(given), "ns": numberSet(given)}))
			wantItem(t, s.get(t, key(partition(t), "a")), with(partition(t), "a", item{"n": num(want), "ns": numberSet(want)}))
		}
	})
	t.Run("a put replaces the whole item and returns the old one", func(t *testing.T) {
		s.put(t, with(partition(t), "a", item{"x": str("1")}))
		out, err := s.Tables.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &s.texts, Item: with(partition(t), "a", item{"y": str("2")}),
			ReturnValues: types.ReturnValueAllOld})
		wantNoError(t, err)
		wantItem(t, out.Attributes, with(partition(t), "a", item{"x": str("1")}))
		wantItem(t, s.get(t, key(partition(t), "a")), with(partition(t), "a", item{"y": str("2")}))
	})
	t.Run("a delete returns the old item, once", func(t *testing.T) {
		s.put(t, with(partition(t), "a", item{"x": str("1")}))
		for _, want := range []item{with(partition(t), "a", item{"x": str("1")}), nil} {
			out, err := s.Tables.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &s.texts, Key: key(partition(t), "a"),
				ReturnValues: types.ReturnValueAllOld})
			wantNoError(t, err)
			wantItem(t, out.Attributes, want)
		}
	})
	t.Run("a failed condition carries the item when asked for", func(t *testing.T) {
		s.put(t, with(partition(t), "a", item{"x": str("1")}))
		for _, ask := range []types.ReturnValuesOnConditionCheckFailure{types.ReturnValuesOnConditionCheckFailureAllOld, ""} {
			_, err := s.Tables.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &s.texts, Item: key(partition(t), "a"),
				ConditionExpression: aws.String("attribute_not_exists(pk)"), ReturnValuesOnConditionCheckFailure: ask})
			var failed *types.ConditionalCheckFailedException
			if !asType(err, &failed) {
				t.Fatalf("got %v, want a failed condition", err)
			}
			if ask == "" && failed.Item != nil {
				t.Fatalf("got item %v without asking", failed.Item)
			}
			if ask != "" {
				wantItem(t, failed.Item, with(partition(t), "a", item{"x": str("1")}))
			}
		}
	})
}

func (s *suite) testReturnValues(t *testing.T) {
	for _, c := range []struct {
		want types.ReturnValue
		attr item
	}{
		{types.ReturnValueNone, nil},
		{types.ReturnValueAllOld, item{"n": num("1"), "m": fields(item{"a": num("1")}), "other": str("o")}},
		{types.ReturnValueAllNew, item{"n": num("2"), "m": fields(item{"a": num("9")}), "new_": str("v"), "other": str("o")}},
		{types.ReturnValueUpdatedOld, item{"n": num("1"), "m": fields(item{"a": num("1")})}},
		{types.ReturnValueUpdatedNew, item{"n": num("2"), "m": fields(item{"a": num("9")}), "new_": str("v")}},
	} {
		t.Run(fmt.Sprintf("an update returns %s", c.want), func(t *testing.T) {
			pk := partition(t)
			s.put(t, with(pk, "a", item{"n": num("1"), "m": fields(item{"a": num("1")}), "other": str("o")}))
			out, err := s.Tables.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: &s.texts, Key: key(pk, "a"),
				UpdateExpression:          aws.String("SET m.a = :nine, new_ = :v REMOVE gone ADD n :one"),
				ExpressionAttributeValues: item{":nine": num("9"), ":v": str("v"), ":one": num("1")}, ReturnValues: c.want})
			wantNoError(t, err)
			want := c.attr
			if c.want == types.ReturnValueAllOld || c.want == types.ReturnValueAllNew {
				want = with(pk, "a", want)
			}
			wantItem(t, out.Attributes, want)
		})
	}
}
