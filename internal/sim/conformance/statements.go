package conformance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// statement is an update of the item (pk, sk) that asks for the old item where its condition fails.
func (s *suite) statement(pk, sk, clauses, condition string, parameters ...types.AttributeValue) types.BatchStatementRequest {
	before := strings.Count(clauses, "?")
	all := append(append([]types.AttributeValue{}, parameters[:before]...), str(pk), str(sk))
	return types.BatchStatementRequest{
		Statement:                           aws.String(fmt.Sprintf(`UPDATE %q %s WHERE "pk" = ? AND "sk" = ?%s`, s.texts, clauses, condition)),
		Parameters:                          append(all, parameters[before:]...),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

func (s *suite) execute(t *testing.T, statements ...types.BatchStatementRequest) []types.BatchStatementResponse {
	t.Helper()
	out, err := s.Tables.BatchExecuteStatement(t.Context(), &dynamodb.BatchExecuteStatementInput{Statements: statements})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Responses) != len(statements) {
		t.Fatalf("%d responses to %d statements", len(out.Responses), len(statements))
	}
	return out.Responses
}

func (s *suite) testStatements(t *testing.T) {
	pk := partition(t)
	t.Run("an item is inserted once", func(t *testing.T) {
		insert := types.BatchStatementRequest{
			Statement:  aws.String(fmt.Sprintf(`INSERT INTO %q VALUE {'pk': ?, 'sk': ?, 'v': ?}`, s.texts)),
			Parameters: []types.AttributeValue{str(pk), str("inserted"), num("1")},
		}
		wantStatement(t, s.execute(t, insert)[0], "")
		wantStatement(t, s.execute(t, insert)[0], types.BatchStatementErrorCodeEnumDuplicateItem)
		wantItem(t, s.get(t, key(pk, "inserted")), with(pk, "inserted", item{"v": num("1")}))
	})
	if s.Deviates[NoStatements] {
		t.Run("statements of several clauses are refused", func(t *testing.T) {
			s.put(t, with(pk, "a", item{"n": num("1")}))
			r := s.execute(t, s.statement(pk, "a", `SET "x" = ? SET "y" = ?`, "", num("1"), num("2")))
			wantStatement(t, r[0], types.BatchStatementErrorCodeEnumValidationError)
		})
		return
	}
	t.Run("each statement is judged by its own condition", func(t *testing.T) { s.testJudgedAlone(t, pk) })
	t.Run("conditions", func(t *testing.T) { s.testStatementConditions(t, pk) })
	t.Run("an item that stands twice is refused", func(t *testing.T) {
		one := s.statement(pk, "b", `SET "x" = ?`, "", num("1"))
		_, err := s.Tables.BatchExecuteStatement(t.Context(),
			&dynamodb.BatchExecuteStatementInput{Statements: []types.BatchStatementRequest{one, one}})
		wantInvalid(t, err)
	})
	t.Run("null, a set and a map are set", func(t *testing.T) {
		s.put(t, with(pk, "kinds", item{"v": num("1")}))
		null := &types.AttributeValueMemberNULL{Value: true}
		wantStatement(t, s.execute(t, s.statement(pk, "kinds", `SET "z" = ? SET "ss" = ? SET "m" = ? REMOVE "none"`, "", null,
			&types.AttributeValueMemberSS{Value: []string{"a", "b"}}, &types.AttributeValueMemberM{Value: item{"a": null}}))[0], "")
		got := s.get(t, key(pk, "kinds"))
		if _, ok := got["z"].(*types.AttributeValueMemberNULL); !ok {
			t.Errorf("z is %#v, want null", got["z"])
		}
		if set, ok := got["ss"].(*types.AttributeValueMemberSS); !ok || len(set.Value) != 2 {
			t.Errorf("ss is %#v, want a set of two texts", got["ss"])
		}
		if _, ok := got["m"].(*types.AttributeValueMemberM); !ok {
			t.Errorf("m is %#v, want a map", got["m"])
		}
	})
	t.Run("a quoted name is one attribute", func(t *testing.T) { s.testStatementNames(t, pk) })
	t.Run("26 statements are too many", func(t *testing.T) {
		var all []types.BatchStatementRequest
		for i := range 26 {
			all = append(all, s.statement(pk, fmt.Sprint(i), `SET "x" = ?`, "", num("1")))
		}
		_, err := s.Tables.BatchExecuteStatement(t.Context(), &dynamodb.BatchExecuteStatementInput{Statements: all})
		wantInvalid(t, err)
	})
}

func (s *suite) testJudgedAlone(t *testing.T, pk string) {
	for _, sk := range []string{"1", "2", "3"} {
		s.put(t, with(pk, sk, item{"v": num("1"), `od"d`: str("x"), "gone": str("y")}))
	}
	r := s.execute(t,
		s.statement(pk, "1", `SET "v" = ? SET "w" = ? REMOVE "gone" REMOVE "od""d"`, ` AND ("v" = ?)`, num("2"), str("new"), num("1")),
		s.statement(pk, "2", `SET "v" = ?`, ` AND ("v" = ?)`, num("2"), num("7")),
		s.statement(pk, "none", `SET "v" = ?`, ` AND ("v" IS MISSING)`, num("2")),
		s.statement(pk, "3", `REMOVE "v"`, ` AND ("od""d" = ?)`, str("x")),
	)
	wantStatement(t, r[0], "")
	wantStatement(t, r[1], types.BatchStatementErrorCodeEnumConditionalCheckFailed)
	wantItem(t, r[1].Error.Item, with(pk, "2", item{"v": num("1"), `od"d`: str("x"), "gone": str("y")}))
	wantStatement(t, r[2], types.BatchStatementErrorCodeEnumConditionalCheckFailed)
	if len(r[2].Error.Item) > 0 {
		t.Errorf("an item that is not there is returned as %v", r[2].Error.Item)
	}
	wantStatement(t, r[3], "")
	wantItem(t, s.get(t, key(pk, "1")), with(pk, "1", item{"v": num("2"), "w": str("new")}))
	wantItem(t, s.get(t, key(pk, "3")), with(pk, "3", item{`od"d`: str("x"), "gone": str("y")}))
}

// testStatementNames has statements name attributes as rules may. A name that looks like a placeholder is refused.
func (s *suite) testStatementNames(t *testing.T, pk string) {
	beside := &types.AttributeValueMemberM{Value: item{"b": num("7")}}
	for i, name := range []string{"a.b", "a[0]", "we?ird", `od"d`, `"`, `back\slash`, "two words", "größe", "SET", "--", "#n0", ":v0"} {
		t.Run(name, func(t *testing.T) {
			sk, quoted := fmt.Sprintf("name %d", i), `"`+strings.ReplaceAll(name, `"`, `""`)+`"`
			before := with(pk, sk, item{name: num("1"), "a": beside})
			s.put(t, before)
			r := s.execute(t, types.BatchStatementRequest{
				Statement: aws.String(fmt.Sprintf(`UPDATE %q SET %s = ? WHERE "pk" = ? AND "sk" = ? AND (%s = ? AND %s IS NOT MISSING)`,
					s.texts, quoted, quoted, quoted)),
				Parameters: []types.AttributeValue{num("2"), str(pk), str(sk), num("1")},
			})
			if strings.ContainsAny(name[:1], "#:") {
				wantStatement(t, r[0], types.BatchStatementErrorCodeEnumValidationError)
				wantItem(t, s.get(t, key(pk, sk)), before)
				return
			}
			wantStatement(t, r[0], "")
			wantItem(t, s.get(t, key(pk, sk)), with(pk, sk, item{name: num("2"), "a": beside}))
		})
	}
}

// testStatementConditions tries the conditions that the engine sends, on items with values of every kind.
func (s *suite) testStatementConditions(t *testing.T, pk string) {
	null, flag := &types.AttributeValueMemberNULL{Value: true}, &types.AttributeValueMemberBOOL{Value: true}
	bytes := &types.AttributeValueMemberB{Value: []byte{1, 2}}
	all := item{"s": str("ctx 1x d"), "n": num("5"), "l": list(num("1"), str("a")), "z": null, "t": flag, "b": bytes,
		"m": &types.AttributeValueMemberM{Value: item{"a": num("1")}}, "ss": &types.AttributeValueMemberSS{Value: []string{"a", "b"}}}
	for i, c := range []struct {
		condition  string
		parameters []types.AttributeValue
		holds      bool
	}{
		{`"pk" IS NOT MISSING`, nil, true},
		{`"none" IS MISSING AND "s" IS NOT MISSING`, nil, true},
		{`"none" IS NOT MISSING`, nil, false},
		{`begins_with("s", ?) AND "s" < ?`, []types.AttributeValue{str("ctx "), str("ctx 2")}, true},
		{`begins_with("s", ?) AND "s" < ?`, []types.AttributeValue{str("ctx "), str("ctx 1")}, false},
		{`"none" IS MISSING OR NOT begins_with("none", ?) OR "none" < ?`, []types.AttributeValue{str("c"), str("d")}, true},
		{`"s" IS MISSING OR NOT begins_with("s", ?) OR "s" < ?`, []types.AttributeValue{str("ctx "), str("ctx 1")}, false},
		{`"s" IS MISSING OR NOT begins_with("s", ?) OR "s" <= ? OR "s" BETWEEN ? AND ? OR "s" > ?`,
			[]types.AttributeValue{str("ctx "), str("ctx 1"), str("ctx 1w"), str("ctx 3"), str("ctx 9")}, true},
		{`("n" = ? OR "n" = ?) AND "pk" IS NOT MISSING`, []types.AttributeValue{str("5"), num("5.0")}, true},
		{`"n" IS MISSING OR NOT begins_with("n", ?) OR "n" < ?`, []types.AttributeValue{str("ctx "), str("ctx 1")}, true},
		{`"n" = ?`, []types.AttributeValue{str("5")}, false},
		{`"l" = ?`, []types.AttributeValue{list(num("1"), str("a"))}, true},
		{`"s" = ? AND "none" IS MISSING`, []types.AttributeValue{str("ctx 1x d")}, true},
		{`"z" = ?`, []types.AttributeValue{null}, true},
		{`"z" IS MISSING`, nil, false},
		{`"z" IS MISSING OR NOT begins_with("z", ?) OR "z" < ?`, []types.AttributeValue{str("ctx "), str("ctx 1")}, true},
		{`"m" = ?`, []types.AttributeValue{all["m"]}, true},
		{`"ss" = ?`, []types.AttributeValue{&types.AttributeValueMemberSS{Value: []string{"b", "a"}}}, true},
		{`"b" = ?`, []types.AttributeValue{bytes}, true},
		{`"t" = ?`, []types.AttributeValue{flag}, true},
		{`"l" IS MISSING OR NOT begins_with("l", ?) OR "l" < ?`, []types.AttributeValue{str("ctx "), str("ctx 1")}, true},
	} {
		sk := fmt.Sprintf("condition %d", i)
		s.put(t, with(pk, sk, all))
		want := types.BatchStatementErrorCodeEnum("")
		if !c.holds {
			want = types.BatchStatementErrorCodeEnumConditionalCheckFailed
		}
		t.Run(c.condition, func(t *testing.T) {
			wantStatement(t, s.execute(t, s.statement(pk, sk, `SET "x" = ?`, " AND ("+c.condition+")",
				append([]types.AttributeValue{num("1")}, c.parameters...)...))[0], want)
		})
	}
}

// wantStatement fails unless a statement ended with this code; "": it took effect.
func wantStatement(t *testing.T, r types.BatchStatementResponse, want types.BatchStatementErrorCodeEnum) {
	t.Helper()
	switch {
	case r.Error == nil && want != "":
		t.Fatalf("a statement took effect, want %s", want)
	case r.Error != nil && r.Error.Code != want:
		t.Fatalf("got %s (%s), want %q", r.Error.Code, aws.ToString(r.Error.Message), want)
	}
}
