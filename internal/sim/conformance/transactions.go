package conformance

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func (s *suite) transact(t *testing.T, actions ...types.TransactWriteItem) error {
	t.Helper()
	_, err := s.Tables.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: actions})
	return err
}

func (s *suite) putAction(it item, condition string) types.TransactWriteItem {
	p := &types.Put{TableName: &s.texts, Item: it, ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld}
	if condition != "" {
		p.ConditionExpression = &condition
	}
	return types.TransactWriteItem{Put: p}
}

func (s *suite) updateAction(k item, update string, vals item) types.TransactWriteItem {
	return types.TransactWriteItem{Update: &types.Update{TableName: &s.texts, Key: k, UpdateExpression: &update,
		ExpressionAttributeValues: vals}}
}

func (s *suite) deleteAction(k item) types.TransactWriteItem {
	return types.TransactWriteItem{Delete: &types.Delete{TableName: &s.texts, Key: k}}
}

func (s *suite) checkAction(k item, condition string) types.TransactWriteItem {
	return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{TableName: &s.texts, Key: k, ConditionExpression: &condition}}
}

// wantReasons fails unless err is a cancellation with these codes in this order.
func wantReasons(t *testing.T, err error, codes ...string) []types.CancellationReason {
	t.Helper()
	var cancelled *types.TransactionCanceledException
	if !asType(err, &cancelled) {
		t.Fatalf("got %v, want a cancelled transaction", err)
	}
	var got []string
	for _, r := range cancelled.CancellationReasons {
		got = append(got, aws.ToString(r.Code))
	}
	if !slices.Equal(got, codes) {
		t.Fatalf("got reasons %v, want %v", got, codes)
	}
	return cancelled.CancellationReasons
}

func (s *suite) testTransactions(t *testing.T) {
	t.Run("all four actions happen together", func(t *testing.T) {
		pk := partition(t)
		s.put(t, with(pk, "update", item{"n": num("1")}))
		s.put(t, key(pk, "delete"))
		s.put(t, key(pk, "check"))
		wantNoError(t, s.transact(t,
			s.putAction(with(pk, "put", item{"x": str("y")}), "attribute_not_exists(pk)"),
			s.updateAction(key(pk, "update"), "ADD n :one", item{":one": num("1")}),
			s.deleteAction(key(pk, "delete")),
			s.checkAction(key(pk, "check"), "attribute_exists(pk)")))
		wantItem(t, s.get(t, key(pk, "put")), with(pk, "put", item{"x": str("y")}))
		wantItem(t, s.get(t, key(pk, "update")), with(pk, "update", item{"n": num("2")}))
		wantItem(t, s.get(t, key(pk, "delete")), nil)
		wantItem(t, s.get(t, key(pk, "check")), key(pk, "check"))
	})
	t.Run("one failed condition cancels all, with reasons in order", func(t *testing.T) {
		pk := partition(t)
		old := with(pk, "there", item{"n": num("1")})
		s.put(t, old)
		err := s.transact(t,
			s.putAction(key(pk, "new"), ""),
			s.putAction(key(pk, "there"), "attribute_not_exists(pk)"),
			s.updateAction(key(pk, "third"), "SET a = :v", item{":v": num("1")}),
			s.checkAction(key(pk, "none"), "attribute_exists(pk)"))
		reasons := wantReasons(t, err, "None", "ConditionalCheckFailed", "None", "ConditionalCheckFailed")
		wantItem(t, reasons[1].Item, old)
		if reasons[0].Item != nil || reasons[3].Item != nil {
			t.Errorf("got items %v and %v without asking", reasons[0].Item, reasons[3].Item)
		}
		wantItem(t, s.get(t, key(pk, "new")), nil)
		wantItem(t, s.get(t, key(pk, "third")), nil)
		wantItem(t, s.get(t, key(pk, "there")), old)
	})
}

func (s *suite) testTransactionValidation(t *testing.T) {
	for update, name := range map[string]string{"ADD n :v": "a number that overflows", "SET m.x = :v": "a path that leads nowhere",
		"ADD s :v": "an operand of the wrong type", "SET z = nothing + :v": "an attribute that does not exist"} {
		t.Run(name+" cancels with ValidationError", func(t *testing.T) {
			pk := partition(t)
			s.put(t, with(pk, "a", item{"n": num(digits38), "s": str("x")}))
			err := s.transact(t, s.putAction(key(pk, "new"), ""), s.updateAction(key(pk, "a"), update, item{":v": num("0.5")}))
			if s.Deviates[UpdateErrorsUnreasoned] {
				wantInvalid(t, err)
			} else {
				wantReasons(t, err, "None", "ValidationError")
			}
			wantItem(t, s.get(t, key(pk, "new")), nil)
		})
	}
	t.Run("a key against the schema cancels with ValidationError", func(t *testing.T) {
		pk := partition(t)
		wantReasons(t, s.transact(t, s.updateAction(key(pk, "a"), "SET sk = :v", item{":v": str("x")})), "ValidationError")
		wantReasons(t, s.transact(t, s.putAction(key(pk, "a"), ""), s.putAction(item{"pk": str(pk), "sk": num("1")}, "")), "None",
			"ValidationError")
		wantItem(t, s.get(t, key(pk, "a")), nil)
	})
	t.Run("an item too large or with an empty key is refused", func(t *testing.T) {
		pk := partition(t)
		wantInvalid(t, s.transact(t, s.putAction(with(pk, "a", item{"v": str(strings.Repeat("x", 400<<10))}), "")))
		wantInvalid(t, s.transact(t, s.putAction(key(pk, ""), "")))
	})
	t.Run("two actions on one item are refused", func(t *testing.T) {
		pk := partition(t)
		wantInvalid(t, s.transact(t, s.putAction(key(pk, "a"), ""), s.deleteAction(key(pk, "a"))))
		wantInvalid(t, s.transact(t, s.checkAction(key(pk, "a"), "attribute_not_exists(pk)"), s.putAction(key(pk, "a"), "")))
	})
	t.Run("an expression that is wrong by itself is refused", func(t *testing.T) {
		pk := partition(t)
		wantInvalid(t, s.transact(t, s.putAction(key(pk, "a"), "nonsense")))
		wantInvalid(t, s.transact(t, s.updateAction(key(pk, "a"), "SET a = :v, a = :v", item{":v": str("x")})))
		wantInvalid(t, s.transact(t, s.updateAction(key(pk, "a"), "SET a = :v", item{":v": str("x"), ":w": str("x")})))
	})
	t.Run("an action has to be one action", func(t *testing.T) {
		both := s.putAction(key(partition(t), "a"), "")
		both.Delete = s.deleteAction(key(partition(t), "b")).Delete
		wantInvalid(t, s.transact(t, both))
		wantInvalid(t, s.transact(t, types.TransactWriteItem{}))
	})
	t.Run("a table that does not exist", func(t *testing.T) {
		a := s.deleteAction(key("a", "b"))
		a.Delete.TableName = aws.String(s.texts + "-none")
		wantCode(t, s.transact(t, a), "ResourceNotFoundException")
	})
}

func (s *suite) testTransactionLimits(t *testing.T) {
	t.Run("a hundred actions are the most", func(t *testing.T) {
		pk := partition(t)
		var actions []types.TransactWriteItem
		for i := range 100 {
			actions = append(actions, s.putAction(key(pk, fmt.Sprint(i)), ""))
		}
		wantNoError(t, s.transact(t, actions...))
		wantInvalid(t, s.transact(t, append(actions, s.putAction(key(pk, "100"), ""))...))
	})
	t.Run("4 MB are the most", func(t *testing.T) {
		pk := partition(t)
		var actions []types.TransactWriteItem
		for i := range 11 {
			actions = append(actions, s.putAction(with(pk, fmt.Sprint(i), item{"v": str(strings.Repeat("x", 390<<10))}), ""))
		}
		wantInvalid(t, s.transact(t, actions...))
		wantNoError(t, s.transact(t, actions[:10]...))
	})
}

func (s *suite) testTransactionTokens(t *testing.T) {
	t.Run("a token makes it happen once", func(t *testing.T) {
		pk := partition(t)
		in := &dynamodb.TransactWriteItemsInput{ClientRequestToken: aws.String(fmt.Sprintf("token-%d", runs.Add(1)) + s.texts[12:30]),
			TransactItems: []types.TransactWriteItem{s.updateAction(key(pk, "a"), "ADD n :v", item{":v": num("1")})}}
		for range 2 {
			_, err := s.Tables.TransactWriteItems(t.Context(), in)
			wantNoError(t, err)
		}
		wantItem(t, s.get(t, key(pk, "a")), with(pk, "a", item{"n": num("1")}))
		in.TransactItems = []types.TransactWriteItem{s.updateAction(key(pk, "a"), "ADD n :v", item{":v": num("2")})}
		_, err := s.Tables.TransactWriteItems(t.Context(), in)
		wantCode(t, err, "IdempotentParameterMismatchException")
	})
	t.Run("a cancelled transaction leaves its token free", func(t *testing.T) {
		pk := partition(t)
		in := &dynamodb.TransactWriteItemsInput{ClientRequestToken: aws.String(fmt.Sprintf("token-%d", runs.Add(1)) + s.texts[12:30]),
			TransactItems: []types.TransactWriteItem{s.putAction(with(pk, "a", item{"x": str("mine")}), "attribute_not_exists(pk)")}}
		s.put(t, key(pk, "a"))
		_, err := s.Tables.TransactWriteItems(t.Context(), in)
		wantReasons(t, err, "ConditionalCheckFailed")
		_, err = s.Tables.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &s.texts, Key: key(pk, "a")})
		wantNoError(t, err)
		_, err = s.Tables.TransactWriteItems(t.Context(), in)
		wantNoError(t, err)
		wantItem(t, s.get(t, key(pk, "a")), with(pk, "a", item{"x": str("mine")}))
	})
}
