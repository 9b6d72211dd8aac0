package conformance

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// testEdges holds writes and reads to the limits that expressions, items and keys share.
func (s *suite) testEdges(t *testing.T) {
	t.Run("an update to 400 KB, and to a byte more", func(t *testing.T) {
		pk := partition(t)
		room := 400<<10 - len("pk") - len(pk) - len("sk") - len("a") - len("v")
		wantNoError(t, s.updateText(t, key(pk, "a"), "SET v = :v", item{":v": str(strings.Repeat("x", room))}))
		wantInvalid(t, s.updateText(t, key(pk, "a"), "SET v = :v", item{":v": str(strings.Repeat("x", room+1))}))
		wantInvalid(t, s.updateText(t, key(pk, "a"), "SET w = :v", item{":v": str("")}))
		wantNoError(t, s.updateText(t, key(pk, "a"), "SET w = :w, v = :v", item{":w": str(""), ":v": str(strings.Repeat("x", room-1))}))
	})
	s.testOperators(t)
	for _, n := range []int{4096, 4097} {
		t.Run(fmt.Sprintf("an expression of %d bytes", n), func(t *testing.T) {
			text := "SET a = :v" + strings.Repeat(" ", n-len("SET a = :v"))
			err := s.updateText(t, key(partition(t), "a"), text, item{":v": num("1")})
			if n > 4096 {
				wantInvalid(t, err)
				return
			}
			wantNoError(t, err)
		})
	}
	t.Run("empty binaries", func(t *testing.T) {
		pk := partition(t)
		whole := with(pk, "a", item{"b": bin(""), "bs": binaries("", "x"), "l": list(bin(""))})
		s.put(t, whole)
		wantItem(t, s.get(t, key(pk, "a")), whole)
	})
	t.Run("texts that look alike are different keys", func(t *testing.T) {
		pk := partition(t)
		for _, sk := range []string{"\u00e9", "e\u0301", "\U0001f600", "\x00", " ", "a/b", "a%2Fb"} {
			s.put(t, with(pk, sk, item{"v": str(sk)}))
		}
		wantItem(t, s.get(t, key(pk, "\u00e9")), with(pk, "\u00e9", item{"v": str("\u00e9")}))
		wantItem(t, s.get(t, key(pk, "e\u0301")), with(pk, "e\u0301", item{"v": str("e\u0301")}))
		wantItem(t, s.get(t, key(pk, "\x00")), with(pk, "\x00", item{"v": str("\x00")}))
	})
	t.Run("keys that are too long are looked up", func(t *testing.T) {
		pk := partition(t)
		long := key(pk, strings.Repeat("x", 1025))
		_, err := s.Tables.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &s.texts, Key: long})
		wantInvalid(t, err)
		_, err = s.Tables.BatchGetItem(t.Context(), &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
			s.texts: {Keys: []map[string]value{key(pk, "a"), long}}}})
		wantInvalid(t, err)
		wantInvalid(t, s.updateText(t, long, "SET a = :v", item{":v": num("1")}))
		text := "pk = :p AND begins_with(sk, :s)"
		_, err = s.Tables.Query(t.Context(), &dynamodb.QueryInput{TableName: &s.texts, KeyConditionExpression: &text,
			ExpressionAttributeValues: item{":p": str(pk), ":s": str(strings.Repeat("x", 1025))}})
		wantInvalid(t, err)
	})
	s.testSumsAtTheEdges(t)
	t.Run("a transaction counts the items that it updates", func(t *testing.T) {
		pk := partition(t)
		var updates []types.TransactWriteItem
		for i := range 11 {
			s.put(t, with(pk, fmt.Sprint(i), item{"v": str(strings.Repeat("x", 390<<10))}))
			updates = append(updates, s.updateAction(key(pk, fmt.Sprint(i)), "SET w = :v", item{":v": num("1")}))
		}
		wantNoError(t, s.transact(t, updates[:10]...))
		if err := s.transact(t, updates...); s.Deviates[UpdatesUnsized] {
			wantNoError(t, err)
		} else {
			wantInvalid(t, err)
		}
	})
}

// updateText updates an item of the table with text keys.
func (s *suite) updateText(t *testing.T, k item, text string, vals item) error {
	t.Helper()
	_, err := s.Tables.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: &s.texts, Key: k, UpdateExpression: &text,
		ExpressionAttributeValues: vals})
	return err
}

// testSumsAtTheEdges adds numbers whose sum has no room, or only just.
func (s *suite) testSumsAtTheEdges(t *testing.T) {
	t.Run("numbers are summed at the edges", func(t *testing.T) {
		for _, c := range []struct {
			before, add, after string // no after: refused
		}{
			{"1e125", "-1e125", "0"}, {"1e40", "-1e40", "0"}, {"1e40", "2.5", ""}, {"9e125", "9e125", ""}, {"1e-125", "1e-125", "2e-125"},
			{"1e-130", "-1e-130", "0"}, {"1e125", "1e-125", ""}, {"5e-130", "5e-130", "1e-129"},
			{"12345678901234567890123456789012345678", "0.1", ""},
		} {
			pk := partition(t)
			s.put(t, with(pk, "a", item{"n": num(c.before)}))
			err := s.updateText(t, key(pk, "a"), "ADD n :v", item{":v": num(c.add)})
			if c.after == "" {
				wantInvalid(t, err)
				continue
			}
			wantNoError(t, err)
			if got := s.get(t, key(pk, "a"))["n"]; !equalNumbers(got, c.after) {
				t.Errorf("%s + %s is %v", c.before, c.add, got)
			}
		}
	})
}

// testOperators holds expressions to 300 operators, functions among them.
func (s *suite) testOperators(t *testing.T) {
	ors := func(one string, n int) string { return strings.Repeat(one+" OR ", n-1) + one }
	numbers, strs := item{":v": num("1")}, item{":v": str("1")}
	for _, c := range []struct {
		name    string
		text    string
		vals    item
		refused bool
	}{
		{"150 comparisons, 149 times OR, a NOT", "NOT " + ors("a=:v", 150), numbers, false},
		{"the same, and a NOT", "NOT NOT " + ors("a=:v", 150), numbers, true},
		{"151 functions and 150 times OR", ors("begins_with(a,:v)", 151), strs, true},
		{"150 times BETWEEN and 149 times OR", ors("a BETWEEN :v AND :v", 150), numbers, false},
		{"151 times BETWEEN and 150 times OR", ors("a BETWEEN :v AND :v", 151), numbers, true},
		{"150 times IN and 149 times OR", ors("a IN(:v,:v)", 150), numbers, false},
		{"151 times IN and 150 times OR", ors("a IN(:v,:v)", 151), numbers, true},
		{"100 comparisons of sizes and 99 times OR", ors("size(a)=:v", 100), numbers, false},
		{"101 comparisons of sizes and 100 times OR", ors("size(a)=:v", 101), numbers, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := s.Tables.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &s.texts, Key: key(partition(t), "a"),
				ConditionExpression: &c.text, ExpressionAttributeValues: c.vals})
			if c.refused {
				wantInvalid(t, err)
			} else if err != nil {
				wantCode(t, err, "ConditionalCheckFailedException")
			}
		})
	}
	for _, n := range []int{300, 301} {
		t.Run(fmt.Sprintf("an update with %d sums", n), func(t *testing.T) {
			var sums []string
			for i := range n {
				sums = append(sums, fmt.Sprintf("a%d=:v+:v", i))
			}
			text := "SET " + strings.Join(sums, ",")
			_, err := s.Tables.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: &s.texts, Key: key(partition(t), "a"),
				UpdateExpression: &text, ExpressionAttributeValues: numbers})
			if n > 300 {
				wantInvalid(t, err)
				return
			}
			wantNoError(t, err)
		})
	}
}

func equalNumbers(got value, want string) bool {
	n, ok := got.(*types.AttributeValueMemberN)
	if !ok {
		return false
	}
	return inOneWay(n.Value) == inOneWay(want)
}

// inOneWay writes a number in one way.
func inOneWay(text string) string {
	d, ok := new(big.Rat).SetString(text)
	if !ok {
		return text
	}
	return d.RatString()
}
