package dynamosim

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/sim/dynamosim/values"
)

// PutItem is the SDK client's method.
func (s *Sim) PutItem(ctx context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return call(ctx, s, tableService, "PutItem", in, s.putItem)
}

func (s *Sim) putItem(in *dynamodb.PutItemInput) (*dynamodb.PutItemOutput, error) {
	if err := refuse(map[string]bool{"Expected": in.Expected != nil, "ConditionalOperator": in.ConditionalOperator != ""}); err != nil {
		return nil, err
	}
	if err := checkReturnValues(in.ReturnValues, false); err != nil {
		return nil, err
	}
	w, err := s.newPut(in.TableName, in.Item, conditional{in.ExpressionAttributeNames, in.ExpressionAttributeValues,
		in.ConditionExpression, in.ReturnValuesOnConditionCheckFailure})
	if err != nil {
		return nil, err
	}
	o, consumed, err := s.single(w)
	if err != nil {
		return nil, err
	}
	return &dynamodb.PutItemOutput{Attributes: returned(o, in.ReturnValues), ConsumedCapacity: shown(in.ReturnConsumedCapacity, consumed)}, nil
}

// DeleteItem is the SDK client's method.
func (s *Sim) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput,
	error) {
	return call(ctx, s, tableService, "DeleteItem", in, s.deleteItem)
}

func (s *Sim) deleteItem(in *dynamodb.DeleteItemInput) (*dynamodb.DeleteItemOutput, error) {
	if err := refuse(map[string]bool{"Expected": in.Expected != nil, "ConditionalOperator": in.ConditionalOperator != ""}); err != nil {
		return nil, err
	}
	if err := checkReturnValues(in.ReturnValues, false); err != nil {
		return nil, err
	}
	w, err := s.newKeyed(in.TableName, in.Key, nil, conditional{in.ExpressionAttributeNames, in.ExpressionAttributeValues,
		in.ConditionExpression, in.ReturnValuesOnConditionCheckFailure})
	if err != nil {
		return nil, err
	}
	w.remove = true
	o, consumed, err := s.single(w)
	if err != nil {
		return nil, err
	}
	return &dynamodb.DeleteItemOutput{Attributes: returned(o, in.ReturnValues), ConsumedCapacity: shown(in.ReturnConsumedCapacity, consumed)},
		nil
}

// UpdateItem is the SDK client's method.
func (s *Sim) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput,
	error) {
	return call(ctx, s, tableService, "UpdateItem", in, s.updateItem)
}

func (s *Sim) updateItem(in *dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput, error) {
	if err := refuse(map[string]bool{"Expected": in.Expected != nil, "ConditionalOperator": in.ConditionalOperator != "",
		"AttributeUpdates": in.AttributeUpdates != nil}); err != nil {
		return nil, err
	}
	if err := checkReturnValues(in.ReturnValues, true); err != nil {
		return nil, err
	}
	w, err := s.newKeyed(in.TableName, in.Key, in.UpdateExpression, conditional{in.ExpressionAttributeNames, in.ExpressionAttributeValues,
		in.ConditionExpression, in.ReturnValuesOnConditionCheckFailure})
	if err != nil {
		return nil, err
	}
	if w.update == nil { // creates the item if there is none
		w.update = &noUpdate
	}
	o, consumed, err := s.single(w)
	if err != nil {
		return nil, err
	}
	return &dynamodb.UpdateItemOutput{Attributes: returned(o, in.ReturnValues), ConsumedCapacity: shown(in.ReturnConsumedCapacity, consumed)},
		nil
}

func checkReturnValues(want types.ReturnValue, updating bool) error {
	switch want {
	case "", types.ReturnValueNone, types.ReturnValueAllOld:
		return nil
	case types.ReturnValueAllNew, types.ReturnValueUpdatedNew, types.ReturnValueUpdatedOld:
		if updating {
			return nil
		}
	}
	return invalid("Return values set to invalid value: %s", want)
}

// returned is the Attributes of a reply; nil if there are none.
func returned(o outcome, want types.ReturnValue) values.Item {
	switch want {
	case types.ReturnValueAllOld:
		return values.Clone(o.old)
	case types.ReturnValueAllNew:
		return values.Clone(o.after)
	case types.ReturnValueUpdatedOld:
		return projected(o, o.old)
	case types.ReturnValueUpdatedNew:
		return projected(o, o.after)
	}
	return nil
}

func projected(o outcome, item values.Item) values.Item {
	if picked := o.update.Paths().Of(item); len(picked) > 0 {
		return picked
	}
	return nil
}
