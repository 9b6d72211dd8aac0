package dynamosim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/dynamill/dynamill/internal/sim/dynamosim/values"
)

// Limits of a transaction (API reference, TransactWriteItems).
const (
	transactionActionsMax = 100
	transactionBytesMax   = 4 << 20
	tokenCharactersMax    = 36
	tokenTTL              = 10 * time.Minute
)

// token remembers a transaction that succeeded under a client token.
type token struct {
	request string
	reads   map[string]int // bytes by table: what a repetition is billed
	done    time.Time
}

// TransactWriteItems is the SDK client's method.
func (s *Sim) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput,
	_ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return call(ctx, s, tableService, "TransactWriteItems", in, s.transactWriteItems)
}

func (s *Sim) transactWriteItems(in *dynamodb.TransactWriteItemsInput) (*dynamodb.TransactWriteItemsOutput, error) {
	if n := len(in.TransactItems); n < 1 || n > transactionActionsMax {
		return nil, invalid("Member must have length less than or equal to %d and greater than or equal to 1: %d actions", transactionActionsMax,
			n)
	}
	request := ""
	if in.ClientRequestToken != nil {
		if n := len(*in.ClientRequestToken); n < 1 || n > tokenCharactersMax {
			return nil, invalid("ClientRequestToken: Member must have length between 1 and %d", tokenCharactersMax)
		}
		request = fingerprint(in.TransactItems)
		if done, ok := s.tokens[*in.ClientRequestToken]; ok {
			if done.request != request {
				return nil,
					&types.IdempotentParameterMismatchException{Message: aws.String("The request uses the same client token as a previous, but " +
						"non-identical request.")}
			}
			return s.repeated(in, done), nil
		}
	}
	writes, err := s.checkTransaction(in.TransactItems)
	if err != nil {
		return nil, err
	}
	outcomes, err := s.prepare(writes)
	if err != nil {
		return nil, err
	}
	out := &dynamodb.TransactWriteItemsOutput{}
	spent := map[*table]float64{}
	reads := map[string]int{}
	for _, o := range outcomes {
		spent[o.table] += 2 * writeUnits(o)
		s.commit(o)
		reads[o.table.name] += values.Size(o.after)
	}
	for _, t := range sortedTables(spent) {
		c := shown(in.ReturnConsumedCapacity, s.chargeWrite(t, spent[t]))
		if c != nil {
			c.WriteCapacityUnits = aws.Float64(spent[t])
			out.ConsumedCapacity = append(out.ConsumedCapacity, *c)
		}
	}
	if in.ClientRequestToken != nil {
		s.tokens[*in.ClientRequestToken] = token{request, reads, s.options.Now()}
		s.tokenQueue = append(s.tokenQueue, *in.ClientRequestToken)
	}
	return out, nil
}

// repeated answers a transaction that was done already; it is billed as a read of the items.
func (s *Sim) repeated(in *dynamodb.TransactWriteItemsInput, done token) *dynamodb.TransactWriteItemsOutput {
	out := &dynamodb.TransactWriteItemsOutput{}
	for _, name := range sortedNames(done.reads) {
		t := s.tables[name]
		if t == nil {
			continue
		}
		n := 2 * units(done.reads[name], 4<<10)
		if c := shown(in.ReturnConsumedCapacity, s.chargeRead(t, n)); c != nil {
			c.ReadCapacityUnits = aws.Float64(n)
			out.ConsumedCapacity = append(out.ConsumedCapacity, *c)
		}
	}
	return out
}

func (s *Sim) checkTransaction(items []types.TransactWriteItem) ([]*write, error) {
	writes := make([]*write, len(items))
	seen := map[string]bool{}
	for i, item := range items {
		w, err := s.action(item)
		if err != nil {
			return nil, err
		}
		id := holdID(w.table, w.key)
		if w.mismatch == nil && seen[id] {
			return nil, invalid("Transaction request cannot include multiple operations on one item")
		}
		seen[id] = true
		writes[i] = w
	}
	return writes, nil
}

func (s *Sim) action(item types.TransactWriteItem) (*write, error) {
	given := 0
	for _, is := range []bool{item.Put != nil, item.Update != nil, item.Delete != nil, item.ConditionCheck != nil} {
		if is {
			given++
		}
	}
	if given != 1 {
		return nil, invalid("TransactItems can only contain one of Check, Put, Update or Delete")
	}
	switch {
	case item.Put != nil:
		p := item.Put
		return s.newPut(p.TableName, p.Item, conditional{p.ExpressionAttributeNames, p.ExpressionAttributeValues, p.ConditionExpression,
			p.ReturnValuesOnConditionCheckFailure})
	case item.Update != nil:
		u := item.Update
		if u.UpdateExpression == nil {
			return nil, invalid("The UpdateExpression of an Update in a transaction must not be null")
		}
		return s.newKeyed(u.TableName, u.Key, u.UpdateExpression, conditional{u.ExpressionAttributeNames, u.ExpressionAttributeValues,
			u.ConditionExpression, u.ReturnValuesOnConditionCheckFailure})
	case item.Delete != nil:
		d := item.Delete
		w, err := s.newKeyed(d.TableName, d.Key, nil, conditional{d.ExpressionAttributeNames, d.ExpressionAttributeValues, d.ConditionExpression,
			d.ReturnValuesOnConditionCheckFailure})
		if err == nil {
			w.remove = true
		}
		return w, err
	}
	c := item.ConditionCheck
	if c.ConditionExpression == nil {
		return nil, invalid("The ConditionExpression of a ConditionCheck must not be null")
	}
	return s.newKeyed(c.TableName, c.Key, nil, conditional{c.ExpressionAttributeNames, c.ExpressionAttributeValues, c.ConditionExpression,
		c.ReturnValuesOnConditionCheckFailure})
}

// prepare plans all writes, or returns the cancellation with one reason for each.
func (s *Sim) prepare(writes []*write) ([]outcome, error) {
	outcomes := make([]outcome, len(writes))
	reasons := make([]types.CancellationReason, len(writes))
	cancelled := false
	bytes := 0
	for i, w := range writes {
		reasons[i] = types.CancellationReason{Code: aws.String("None")}
		o, err := w.plan()
		outcomes[i] = o
		bytes += values.Size(o.after)
		switch api := smithy.APIError(nil); {
		case s.held[holdID(w.table, w.key)] > 0:
			reasons[i] = types.CancellationReason{Code: aws.String("TransactionConflict"),
				Message: aws.String("Transaction is ongoing for the item")}
		case errors.As(err, &api):
			reasons[i] = types.CancellationReason{Code: aws.String("ValidationError"), Message: aws.String(api.ErrorMessage())}
		case o.failed:
			reasons[i] = types.CancellationReason{Code: aws.String("ConditionalCheckFailed"), Message: aws.String("The conditional request failed")}
			if w.returnOld {
				reasons[i].Item = values.Clone(o.old)
			}
		default:
			continue
		}
		cancelled = true
	}
	if cancelled {
		codes := make([]string, len(reasons))
		for i, r := range reasons {
			codes[i] = *r.Code
			outcomes[i].after = outcomes[i].old // billed by what is there
			s.chargeWrite(writes[i].table, 2*writeUnits(outcomes[i]))
		}
		return nil, &types.TransactionCanceledException{
			Message: aws.String(fmt.Sprintf("Transaction cancelled, please refer cancellation reasons for specific reasons [%s]",
				strings.Join(codes, ", "))),
			CancellationReasons: reasons,
		}
	}
	if bytes > transactionBytesMax {
		return nil, invalid("Transaction request size exceeded: the items must not be larger than %d bytes together", transactionBytesMax)
	}
	return outcomes, nil
}
