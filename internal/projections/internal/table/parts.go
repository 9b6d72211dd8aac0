package table

import ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

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
