package conformance

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// verdict is what becomes of a condition.
type verdict string

const (
	holds   verdict = "holds"
	fails   verdict = "fails"
	invalid verdict = "is invalid"
)

// sample is the item that conditions are tried on.
var sample = item{
	"s": str("hello"), "n": num("10"), "b": bin("abc"), "t": boolean(true), "nul": null(), "ss": texts("a", "b"), "ns": numberSet("1", "2"),
	"bs": binaries("x"), "l": list(num("1"), str("two"), list(num("3"))), "m": fields(item{"x": num("1"), "l": list(str("deep"))}),
	"n2": num("10"), "a.b": str("dotted"),
}

type conditionCase struct {
	text  string
	want  verdict
	vals  item
	names map[string]string
}

var conditionCases = []conditionCase{
	{text: "s = :v", vals: item{":v": str("hello")}, want: holds},
	{text: "s = :v", vals: item{":v": str("other")}, want: fails},
	{text: "n = :v", vals: item{":v": num("10.0")}, want: holds},
	{text: "n = :v", vals: item{":v": str("10")}, want: fails},
	{text: "n <> :v", vals: item{":v": str("10")}, want: holds},
	{text: "n <> :v", vals: item{":v": num("10")}, want: fails},
	{text: "absent <> :v", vals: item{":v": num("10")}, want: holds},
	{text: "absent = :v", vals: item{":v": num("10")}, want: fails},
	{text: "absent < :v", vals: item{":v": num("10")}, want: fails},
	{text: "NOT absent < :v", vals: item{":v": num("10")}, want: holds},
	{text: "n < :v", vals: item{":v": num("9")}, want: fails},
	{text: "n > :v", vals: item{":v": num("9")}, want: holds},
	{text: "n <= :v", vals: item{":v": num("10")}, want: holds},
	{text: "n >= :v", vals: item{":v": num("11")}, want: fails},
	{text: "n > :v", vals: item{":v": str("9")}, want: fails},
	{text: "s < :v", vals: item{":v": str("hellp")}, want: holds},
	{text: "b < :v", vals: item{":v": bin("abd")}, want: holds},
	{text: "n = n2", want: holds},
	{text: "n = n", want: invalid},
	{text: "t < :v", vals: item{":v": boolean(true)}, want: invalid},
	{text: "m = :v", vals: item{":v": fields(item{"l": list(str("deep")), "x": num("1.0")})}, want: holds},
	{text: "ss = :v", vals: item{":v": texts("b", "a")}, want: holds},
	{text: "l = :v", vals: item{":v": list(num("1"), str("two"), list(num("3")))}, want: holds},
	{text: "nul = :v", vals: item{":v": null()}, want: holds},
	{text: "n BETWEEN :a AND :b", vals: item{":a": num("10"), ":b": num("11")}, want: holds},
	{text: "n BETWEEN :a AND :b", vals: item{":a": num("1"), ":b": num("9")}, want: fails},
	{text: "n BETWEEN :a AND :b", vals: item{":a": num("2"), ":b": num("1")}, want: invalid},
	{text: "n BETWEEN :a AND :b", vals: item{":a": num("2"), ":b": str("3")}, want: invalid},
	{text: "s IN (:a, :b)", vals: item{":a": str("x"), ":b": str("hello")}, want: holds},
	{text: "s IN (:a)", vals: item{":a": str("x")}, want: fails},
	{text: "absent IN (:a)", vals: item{":a": str("x")}, want: fails},
	{text: "attribute_exists(s)", want: holds},
	{text: "attribute_exists(m.x)", want: holds},
	{text: "attribute_exists(m.y)", want: fails},
	{text: "attribute_exists(s.y)", want: fails},
	{text: "attribute_exists(l[2][0])", want: holds},
	{text: "attribute_exists(l[3])", want: fails},
	{text: "attribute_exists(#d)", names: map[string]string{"#d": "a.b"}, want: holds},
	{text: "attribute_exists(a.b)", want: fails},
	{text: "attribute_not_exists(absent)", want: holds},
	{text: "attribute_not_exists(s)", want: fails},
	{text: "attribute_exists(:v)", vals: item{":v": str("s")}, want: invalid},
	{text: "attribute_type(l, :v)", vals: item{":v": str("L")}, want: holds},
	{text: "attribute_type(l, :v)", vals: item{":v": str("M")}, want: fails},
	{text: "attribute_type(l, :v)", vals: item{":v": str("LIST")}, want: invalid},
	{text: "attribute_type(l, :v)", vals: item{":v": num("1")}, want: invalid},
	{text: "begins_with(s, :v)", vals: item{":v": str("hel")}, want: holds},
	{text: "begins_with(s, :v)", vals: item{":v": str("el")}, want: fails},
	{text: "begins_with(n, :v)", vals: item{":v": str("1")}, want: fails},
	{text: "begins_with(s, :v)", vals: item{":v": num("1")}, want: invalid},
	{text: "contains(s, :v)", vals: item{":v": str("ell")}, want: holds},
	{text: "contains(ss, :v)", vals: item{":v": str("b")}, want: holds},
	{text: "contains(ns, :v)", vals: item{":v": num("2.0")}, want: holds},
	{text: "contains(ns, :v)", vals: item{":v": str("2")}, want: fails},
	{text: "contains(l, :v)", vals: item{":v": str("two")}, want: holds},
	{text: "contains(m.l, :v)", vals: item{":v": str("deep")}, want: holds},
	{text: "contains(absent, :v)", vals: item{":v": str("deep")}, want: fails},
	{text: "size(s) = :v", vals: item{":v": num("5")}, want: holds},
	{text: "size(l) > :v", vals: item{":v": num("3")}, want: fails},
	{text: "size(m) = :v", vals: item{":v": num("2")}, want: holds},
	{text: "size(n) = :v", vals: item{":v": num("2")}, want: fails},
	{text: "size(absent) < :v", vals: item{":v": num("2")}, want: fails},
	{text: "m.x = :v", vals: item{":v": num("1")}, want: holds},
	{text: "m.l[0] = :v", vals: item{":v": str("deep")}, want: holds},
	{text: "#m.#x = :v", vals: item{":v": num("1")}, names: map[string]string{"#m": "m", "#x": "x"}, want: holds},
	{text: "s = :x OR n = :n AND t = :no", vals: item{":x": str("hello"), ":n": num("0"), ":no": boolean(false)}, want: holds},
	{text: "(s = :x OR n = :n) AND t = :no", vals: item{":x": str("hello"), ":n": num("0"), ":no": boolean(false)}, want: fails},
	{text: "NOT s = :x AND n = :n", vals: item{":x": str("x"), ":n": num("10")}, want: holds},
	{text: "NOT (s = :x AND n = :n)", vals: item{":x": str("x"), ":n": num("10")}, want: holds},
	{text: "not s = :x and n = :n or attribute_exists(zz)", vals: item{":x": str("x"), ":n": num("10")}, want: holds},
	{text: "((s = :v))", vals: item{":v": str("hello")}, want: invalid},
	{text: "((s = :v) AND n = n2)", vals: item{":v": str("hello")}, want: holds},
	{text: "", want: invalid},
	{text: "s =", want: invalid},
	{text: "s = :v extra", vals: item{":v": str("hello")}, want: invalid},
	{text: "s == :v", vals: item{":v": str("hello")}, want: invalid},
	{text: "s = 'hello'", want: invalid},
	{text: "n = 10", want: invalid},
	{text: "status = :v", vals: item{":v": str("x")}, want: invalid},
	{text: "s = :undefined", vals: item{":v": str("x")}, want: invalid},
	{text: "s = :undefined", want: invalid},
	{text: "#undefined = :v", vals: item{":v": str("x")}, want: invalid},
	{text: "s = :v", vals: item{":v": str("hello"), ":unused": str("x")}, want: invalid},
	{text: "s = :v", vals: item{":v": str("hello")}, names: map[string]string{"#unused": "s"}, want: invalid},
	{text: "s = :v", vals: item{":v": str("hello")}, names: map[string]string{}, want: invalid},
	{text: "unknown(s)", want: invalid},
	{text: "size(s)", want: invalid},
	{text: "s", want: invalid},
	{text: "begins_with(s, :v) = :v", vals: item{":v": str("x")}, want: invalid},
	{text: "ATTRIBUTE_EXISTS(s)", want: invalid},
	{text: "_x = :v", vals: item{":v": str("x")}, want: invalid},
	{text: "s IN ()", want: invalid},
	{text: "contains(s)", want: invalid},
	{text: ":v = s", vals: item{":v": str("hello")}, want: holds},
	{text: ":v IN (s, l[1])", vals: item{":v": str("two")}, want: holds},
	{text: ":v BETWEEN n AND n2", vals: item{":v": num("10")}, want: holds},
	{text: "contains(:v, s)", vals: item{":v": str("say hello")}, want: holds},
	{text: "begins_with(:v, s)", vals: item{":v": str("hello you")}, want: holds},
	{text: "size(ss) = size(ns)", want: holds},
}

func (s *suite) testConditions(t *testing.T) {
	pk := partition(t)
	s.put(t, with(pk, "sample", sample))
	for _, c := range conditionCases {
		t.Run(c.text+" "+string(c.want), func(t *testing.T) {
			// Deleting and putting back keeps the sample; a check alone has no plain operation.
			_, err := s.Tables.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: &s.texts, Key: key(pk, "sample"),
				ConditionExpression: &c.text, ExpressionAttributeValues: c.vals, ExpressionAttributeNames: c.names})
			switch c.want {
			case holds:
				wantNoError(t, err)
			case fails:
				wantCode(t, err, "ConditionalCheckFailedException")
			default:
				wantInvalid(t, err)
			}
		})
	}
	t.Run("on an item that does not exist", func(t *testing.T) {
		for text, want := range map[string]verdict{"attribute_not_exists(pk)": holds, "attribute_exists(pk)": fails, "pk <> :v": holds,
			"NOT pk = :v": holds, "size(pk) > :v": fails} {
			in := &dynamodb.DeleteItemInput{TableName: &s.texts, Key: key(pk, "none"), ConditionExpression: &text}
			if text[len(text)-2:] == ":v" {
				in.ExpressionAttributeValues = item{":v": num("1")}
			}
			_, err := s.Tables.DeleteItem(t.Context(), in)
			if got := verdictOf(err); got != want {
				t.Errorf("%s: got %s (%v), want %s", text, got, err, want)
			}
		}
	})
}

func verdictOf(err error) verdict {
	switch {
	case err == nil:
		return holds
	case isType[*types.ConditionalCheckFailedException](err):
		return fails
	}
	return invalid
}

type updateCase struct {
	name   string
	before item // nil for an item that does not exist
	text   string
	vals   item
	names  map[string]string
	after  item // nil if the update is invalid
}

const digits38 = "99999999999999999999999999999999999999"

var updateCases = []updateCase{
	{name: "SET makes the item", text: "SET a = :v", vals: item{":v": num("1")}, after: item{"a": num("1")}},
	{name: "SET sees old values only", before: item{"a": num("1"), "b": num("2")}, text: "SET a = b, b = a",
		after: item{"a": num("2"), "b": num("1")}},
	{name: "SET adds", before: item{"a": num("1")}, text: "SET a = a + :v", vals: item{":v": num("0.5")}, after: item{"a": num("1.5")}},
	{name: "SET subtracts", before: item{"a": num("1")}, text: "SET a = a - :v", vals: item{":v": num("3")}, after: item{"a": num("-2")}},
	{name: "SET from two values", text: "SET a = :v + :w", vals: item{":v": num("1"), ":w": num("2")}, after: item{"a": num("3")}},
	{name: "SET adds to a missing attribute", before: item{}, text: "SET a = a + :v", vals: item{":v": num("3")}},
	{name: "SET adds to a string", before: item{"a": str("x")}, text: "SET a = a + :v", vals: item{":v": num("3")}},
	{name: "SET adds a string", before: item{"a": num("1")}, text: "SET a = a + :v", vals: item{":v": str("3")}},
	{name: "SET from a missing attribute", before: item{}, text: "SET a = b"},
	{name: "if_not_exists keeps", before: item{"a": num("1")}, text: "SET a = if_not_exists(a, :v)", vals: item{":v": num("3")},
		after: item{"a": num("1")}},
	{name: "if_not_exists starts", text: "SET a = if_not_exists(a, :z) + :v", vals: item{":v": num("3"), ":z": num("0")},
		after: item{"a": num("3")}},
	{name: "if_not_exists of another", before: item{"b": num("1")}, text: "SET a = if_not_exists(b, :v)", vals: item{":v": num("3")},
		after: item{"a": num("1"), "b": num("1")}},
	{name: "list_append at the end", before: item{"l": list(num("1"))}, text: "SET l = list_append(l, :v)", vals: item{":v": list(num("2"))},
		after: item{"l": list(num("1"), num("2"))}},
	{name: "list_append at the front", before: item{"l": list(num("1"))}, text: "SET l = list_append(:v, l)", vals: item{":v": list(num("2"))},
		after: item{"l": list(num("2"), num("1"))}},
	{name: "list_append to nothing", before: item{}, text: "SET l = list_append(if_not_exists(l, :e), :v)",
		vals: item{":v": list(num("2")), ":e": list()}, after: item{"l": list(num("2"))}},
	{name: "list_append of a number", before: item{"l": list()}, text: "SET l = list_append(l, :v)", vals: item{":v": num("2")}},
	{name: "SET in a map", before: item{"m": fields(item{"a": num("1")})}, text: "SET m.b = :v", vals: item{":v": num("2")},
		after: item{"m": fields(item{"a": num("1"), "b": num("2")})}},
	{name: "SET in a missing map", before: item{}, text: "SET m.b = :v", vals: item{":v": num("2")}},
	{name: "SET in a string", before: item{"m": str("x")}, text: "SET m.b = :v", vals: item{":v": num("2")}},
	{name: "SET in an item that does not exist", text: "SET m.b = :v", vals: item{":v": num("2")}},
	{name: "SET a list element", before: item{"l": list(num("1"), num("2"))}, text: "SET l[1] = :v", vals: item{":v": num("9")},
		after: item{"l": list(num("1"), num("9"))}},
	{name: "SET beyond a list's end", before: item{"l": list(num("1"))}, text: "SET l[9] = :y, l[7] = :x",
		vals: item{":x": num("7"), ":y": num("9")}, after: item{"l": list(num("1"), num("7"), num("9"))}},
	{name: "SET a placeholder with a dot", before: item{}, text: "SET #d = :v", names: map[string]string{"#d": "a.b"},
		vals: item{":v": num("9")}, after: item{"a.b": num("9")}},
	{name: "REMOVE", before: item{"a": num("1"), "b": num("2")}, text: "REMOVE a, absent", after: item{"b": num("2")}},
	{name: "REMOVE list elements by their old places", before: item{"l": list(num("0"), num("1"), num("2"), num("3"))},
		text: "REMOVE l[0], l[2], l[9]", after: item{"l": list(num("1"), num("3"))}},
	{name: "REMOVE in a map", before: item{"m": fields(item{"a": num("1"), "b": num("2")})}, text: "REMOVE m.a",
		after: item{"m": fields(item{"b": num("2")})}},
	{name: "REMOVE in a missing map", before: item{}, text: "REMOVE m.a"},
	{name: "REMOVE and SET", before: item{"a": num("1")}, text: "REMOVE a SET b = a", after: item{"b": num("1")}},
	{name: "ADD to a number", before: item{"a": num("1")}, text: "ADD a :v", vals: item{":v": num("-3")}, after: item{"a": num("-2")}},
	{name: "ADD to nothing", text: "ADD a :v", vals: item{":v": num("3")}, after: item{"a": num("3")}},
	{name: "ADD exactly", before: item{"a": num("0.1")}, text: "ADD a :v", vals: item{":v": num("0.2")}, after: item{"a": num("0.3")}},
	{name: "ADD at 38 digits", before: item{"a": num("99999999999999999999999999999999999998")}, text: "ADD a :v", vals: item{":v": num("1")},
		after: item{"a": num(digits38)}},
	{name: "ADD beyond 38 digits", before: item{"a": num(digits38)}, text: "ADD a :v", vals: item{":v": num("0.5")}},
	{name: "ADD members", before: item{"ss": texts("a", "b")}, text: "ADD ss :v", vals: item{":v": texts("b", "c")},
		after: item{"ss": texts("a", "b", "c")}},
	{name: "ADD numbers to a set", before: item{"ns": numberSet("1")}, text: "ADD ns :v", vals: item{":v": numberSet("1.0", "2")},
		after: item{"ns": numberSet("1", "2")}},
	{name: "ADD in a map", before: item{"m": fields(item{})}, text: "ADD m.n :v", vals: item{":v": num("2")},
		after: item{"m": fields(item{"n": num("2")})}},
	{name: "ADD a number to a string", before: item{"a": str("x")}, text: "ADD a :v", vals: item{":v": num("2")}},
	{name: "ADD a string", before: item{}, text: "ADD a :v", vals: item{":v": str("2")}},
	{name: "ADD a number to a set", before: item{"ns": numberSet("1")}, text: "ADD ns :v", vals: item{":v": num("2")}},
	{name: "DELETE members", before: item{"ss": texts("a", "b")}, text: "DELETE ss :v", vals: item{":v": texts("b", "c")},
		after: item{"ss": texts("a")}},
	{name: "DELETE the last member", before: item{"ss": texts("a"), "x": num("1")}, text: "DELETE ss :v", vals: item{":v": texts("a")},
		after: item{"x": num("1")}},
	{name: "DELETE from nothing", before: item{"x": num("1")}, text: "DELETE ss :v", vals: item{":v": texts("a")}, after: item{"x": num("1")}},
	{name: "DELETE from a set of another type", before: item{"ss": texts("a")}, text: "DELETE ss :v", vals: item{":v": numberSet("1")}},
	{name: "DELETE a number", before: item{"ss": texts("a")}, text: "DELETE ss :v", vals: item{":v": num("1")}},
	{name: "all four clauses", before: item{"a": num("1"), "b": num("1"), "ss": texts("x", "y")},
		text: "set c = :c remove b add a :one delete ss :x",
		vals: item{":c": str("c"), ":one": num("1"), ":x": texts("x")}, after: item{"a": num("2"), "c": str("c"), "ss": texts("y")}},
	{name: "a clause twice", text: "SET a = :v SET b = :v", vals: item{":v": num("1")}},
	{name: "the same path twice", text: "SET a = :v, a = :v", vals: item{":v": num("1")}},
	{name: "overlapping paths", before: item{"m": fields(item{})}, text: "SET m = :v, m.a = :v", vals: item{":v": num("1")}},
	{name: "overlapping paths in two clauses", before: item{"m": fields(item{})}, text: "SET m.a = :v REMOVE m", vals: item{":v": num("1")}},
	{name: "conflicting paths", before: item{"m": fields(item{})}, text: "SET m.a = :v, m[0] = :v", vals: item{":v": num("1")}},
	{name: "a key attribute", text: "SET sk = :v", vals: item{":v": str("x")}},
	{name: "REMOVE of a key attribute", before: item{}, text: "REMOVE sk"},
	{name: "a reserved word", text: "SET name = :v", vals: item{":v": str("x")}},
	{name: "no clause", text: "a = :v", vals: item{":v": str("x")}},
	{name: "an empty expression", text: ""},
	{name: "a trailing comma", text: "SET a = :v,", vals: item{":v": str("x")}},
	{name: "an unused value", text: "SET a = :v", vals: item{":v": str("x"), ":w": str("x")}},
	{name: "a condition's function", text: "SET a = size(b)"},
	{name: "three terms", before: item{"a": num("1")}, text: "SET a = a + :v + :v", vals: item{":v": num("1")}},
	{name: "an empty set", text: "SET a = :v", vals: item{":v": texts()}},
	{name: "REMOVE on an item that does not exist", text: "REMOVE a", after: item{}},
	{name: "DELETE on an item that does not exist", text: "DELETE ss :v", vals: item{":v": texts("a")}, after: item{}},
}

func (s *suite) testUpdates(t *testing.T) {
	for _, c := range updateCases {
		t.Run(c.name, func(t *testing.T) {
			pk := partition(t)
			if c.before != nil {
				s.put(t, with(pk, "a", c.before))
			}
			_, err := s.Tables.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: &s.texts, Key: key(pk, "a"),
				UpdateExpression: &c.text, ExpressionAttributeValues: c.vals, ExpressionAttributeNames: c.names})
			if c.after == nil {
				wantInvalid(t, err)
				if c.before != nil {
					wantItem(t, s.get(t, key(pk, "a")), with(pk, "a", c.before))
				}
				return
			}
			wantNoError(t, err)
			wantItem(t, s.get(t, key(pk, "a")), with(pk, "a", c.after))
		})
	}
	t.Run("no expression makes the item", func(t *testing.T) {
		_, err := s.Tables.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: &s.texts, Key: key(partition(t), "a")})
		wantNoError(t, err)
		wantItem(t, s.get(t, key(partition(t), "a")), key(partition(t), "a"))
	})
	t.Run("a failed condition changes nothing", func(t *testing.T) {
		_, err := s.Tables.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: &s.texts, Key: key(partition(t), "a"),
			UpdateExpression: aws.String("SET a = :v"), ConditionExpression: aws.String("attribute_exists(pk)"),
			ExpressionAttributeValues: item{":v": num("1")}})
		wantCode(t, err, "ConditionalCheckFailedException")
		wantItem(t, s.get(t, key(partition(t), "a")), nil)
	})
}

func (s *suite) testProjections(t *testing.T) {
	pk := partition(t)
	s.put(t, with(pk, "sample", sample))
	for _, c := range []struct {
		text  string
		names map[string]string
		want  item // nil if invalid
	}{
		{text: "s", want: item{"s": str("hello")}},
		{text: "s, n, absent", want: item{"s": str("hello"), "n": num("10")}},
		{text: "m.x", want: item{"m": fields(item{"x": num("1")})}},
		{text: "m.x, m.l[0]", want: item{"m": fields(item{"x": num("1"), "l": list(str("deep"))})}},
		{text: "l[2], l[0]", want: item{"l": list(num("1"), list(num("3")))}},
		{text: "l[7]", want: item{}},
		{text: "m.absent", want: item{}},
		{text: "#d, pk", names: map[string]string{"#d": "a.b"}, want: item{"a.b": str("dotted"), "pk": str(pk)}},
		{text: "s, s"},
		{text: "m, m.x"},
		{text: "s,"},
		{text: "status"},
		{text: "#undefined"},
		{text: "s", names: map[string]string{"#unused": "n"}},
	} {
		t.Run(c.text, func(t *testing.T) {
			out, err := s.Tables.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &s.texts, Key: key(pk, "sample"),
				ConsistentRead: aws.Bool(true), ProjectionExpression: &c.text, ExpressionAttributeNames: c.names})
			if c.want == nil {
				wantInvalid(t, err)
				return
			}
			wantNoError(t, err)
			wantItem(t, out.Item, c.want)
		})
	}
}
