package table

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/awscall"
)

// UpdateState sends one UpdateItem to the state table for a rule; condition "" for none. false: the condition failed.
func (ts *Tables) UpdateState(ctx context.Context, rule, doing string, key Key, update, condition string, c *Expression) (bool, error) {
	_, err := ts.UpdateItem(ctx, rule, doing, ts.StateUpdate(key, update, condition, c))
	return written(err)
}

// written reports, of a write that returned err, whether its condition held.
func written(err error) (bool, error) {
	if err != nil && awscall.Classify(err) == awscall.Condition {
		return false, nil
	}
	return err == nil, err
}

// UpdateItem sends one UpdateItem for a rule.
func (ts *Tables) UpdateItem(ctx context.Context, rule, doing string, in *dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput, error) {
	ts.Counters.Writes.Add(1)
	in.ReturnConsumedCapacity = ddb.ReturnConsumedCapacityTotal
	return write(ctx, ts, doing, WriteUnitsMin,
		func() (*dynamodb.UpdateItemOutput, error) { return ts.Client.UpdateItem(ctx, in) },
		func(out *dynamodb.UpdateItemOutput) ([]string, float64) {
			return []string{rule}, unitsOfOne(out.ConsumedCapacity)
		})
}

// PutState sends one PutItem to the state table for a rule; condition and rule "" for none. false: the condition failed.
func (ts *Tables) PutState(ctx context.Context, rule, doing string, r Row, condition string, c *Expression) (bool, error) {
	in := &dynamodb.PutItemInput{
		TableName: &ts.StateTable, Item: r, ConditionExpression: optional(condition), ReturnConsumedCapacity: ddb.ReturnConsumedCapacityTotal,
		ExpressionAttributeNames: c.Names, ExpressionAttributeValues: c.Values,
	}
	_, err := write(ctx, ts, doing, WriteUnitsMin,
		func() (*dynamodb.PutItemOutput, error) { return ts.Client.PutItem(ctx, in) },
		func(out *dynamodb.PutItemOutput) ([]string, float64) {
			return []string{rule}, unitsOfOne(out.ConsumedCapacity)
		})
	return written(err)
}

// DeleteState sends one DeleteItem to the state table for a rule; condition "" for none.
// A condition that fails is no error: nothing is deleted.
func (ts *Tables) DeleteState(ctx context.Context, rule, doing string, key Key, condition string, c *Expression) error {
	_, err := ts.DeleteStateIf(ctx, rule, doing, key, condition, c)
	return err
}

// DeleteStateIf is DeleteState, and reports whether the condition held.
func (ts *Tables) DeleteStateIf(ctx context.Context, rule, doing string, key Key, condition string, c *Expression) (bool, error) {
	return ts.delete(ctx, rule, doing, ts.StateTable, key.Attributes(), condition, c)
}

// DeleteItem sends one DeleteItem to the user's table for a rule. A condition that fails is no error: nothing is deleted.
func (ts *Tables) DeleteItem(ctx context.Context, rule, doing string, key change.Key, condition string, c *Expression) error {
	ts.Counters.Writes.Add(1)
	_, err := ts.delete(ctx, rule, doing, ts.Table, ts.ItemKey(key), condition, c)
	return err
}

// delete sends one DeleteItem. false: the condition failed.
func (ts *Tables) delete(ctx context.Context, rule, doing, from string, key Row, condition string, c *Expression) (bool, error) {
	in := &dynamodb.DeleteItemInput{
		TableName: &from, Key: key, ConditionExpression: optional(condition), ReturnConsumedCapacity: ddb.ReturnConsumedCapacityTotal,
		ExpressionAttributeNames: c.Names, ExpressionAttributeValues: c.Values,
	}
	_, err := write(ctx, ts, doing, WriteUnitsMin,
		func() (*dynamodb.DeleteItemOutput, error) { return ts.Client.DeleteItem(ctx, in) },
		func(out *dynamodb.DeleteItemOutput) ([]string, float64) {
			return []string{rule}, unitsOfOne(out.ConsumedCapacity)
		})
	return written(err)
}

// Transact sends one transaction. owners are the ids of the rules that its actions serve, one for each or one for all, "" for none.
func (ts *Tables) Transact(ctx context.Context, doing string, owners []string, items []ddb.TransactWriteItem) error {
	ts.Counters.Writes.Add(1)
	ts.Counters.Transactions.Add(1)
	in := &dynamodb.TransactWriteItemsInput{TransactItems: items, ReturnConsumedCapacity: ddb.ReturnConsumedCapacityTotal}
	_, err := write(ctx, ts, doing, TransactionUnitsMin*len(items),
		func() (*dynamodb.TransactWriteItemsOutput, error) { return ts.Client.TransactWriteItems(ctx, in) },
		func(out *dynamodb.TransactWriteItemsOutput) ([]string, float64) {
			return owners, unitsOf(out.ConsumedCapacity...)
		})
	return err
}

// StateUpdate is an UpdateItem on the state table.
func (ts *Tables) StateUpdate(key Key, update, condition string, c *Expression) *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{
		TableName: &ts.StateTable, Key: key.Attributes(), UpdateExpression: &update, ConditionExpression: optional(condition),
		ExpressionAttributeNames: c.Names, ExpressionAttributeValues: c.Values,
	}
}

// UpdatePart is an update of a row as a part of a transaction; condition "" for none.
func (rd *Reader) UpdatePart(key Key, update, condition string, c *Expression) ddb.TransactWriteItem {
	return ddb.TransactWriteItem{Update: &ddb.Update{
		TableName: &rd.StateTable, Key: key.Attributes(), UpdateExpression: &update, ConditionExpression: optional(condition),
		ExpressionAttributeNames: c.Names, ExpressionAttributeValues: c.Values,
	}}
}

// CheckPart is a condition on a row as a part of a transaction.
func (rd *Reader) CheckPart(key Key, condition string, c *Expression) ddb.TransactWriteItem {
	return ddb.TransactWriteItem{ConditionCheck: &ddb.ConditionCheck{
		TableName: &rd.StateTable, Key: key.Attributes(), ConditionExpression: &condition,
		ExpressionAttributeNames: c.Names, ExpressionAttributeValues: c.Values,
	}}
}

// PutPart is a row as a part of a transaction; condition "" for none.
func (rd *Reader) PutPart(r Row, condition string, c *Expression) ddb.TransactWriteItem {
	return ddb.TransactWriteItem{Put: &ddb.Put{
		TableName: &rd.StateTable, Item: r, ConditionExpression: optional(condition),
		ExpressionAttributeNames: c.Names, ExpressionAttributeValues: c.Values,
	}}
}

// DeletePart is the end of a row as a part of a transaction; condition "" for none.
func (rd *Reader) DeletePart(key Key, condition string, c *Expression) ddb.TransactWriteItem {
	return ddb.TransactWriteItem{Delete: &ddb.Delete{
		TableName: &rd.StateTable, Key: key.Attributes(), ConditionExpression: optional(condition),
		ExpressionAttributeNames: c.Names, ExpressionAttributeValues: c.Values,
	}}
}

// optional is an expression of a request; nil where the text is empty.
func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// AllOld has a refused write return the item that it found. It costs nothing (API reference, UpdateItem).
const AllOld = ddb.ReturnValuesOnConditionCheckFailureAllOld
