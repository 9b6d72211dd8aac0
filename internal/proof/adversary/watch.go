package adversary

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
)

type itemKey = map[string]ddb.AttributeValue

// perform carries a call out and tells Wrote what it did to the table's items.
func (c *Crew) perform(call *Call) error {
	keys := c.written(call.Input)
	lease := c.leaseWritten(call.Input)
	was := c.lease(lease)
	before := make([]change.Item, len(keys))
	for i, key := range keys {
		before[i] = c.item(key)
	}
	err := call.perform()
	if err == nil {
		c.Done(call)
		c.judgeLease(call, was, c.lease(lease))
	}
	for i, key := range keys {
		if after := c.item(key); err == nil {
			c.Wrote(call.Worker, before[i], after)
		}
	}
	return err
}

// written are the keys in the table that a request writes.
func (c *Crew) written(input any) []itemKey {
	switch in := input.(type) {
	case *dynamodb.UpdateItemInput:
		if aws.ToString(in.TableName) == c.World.Table {
			return []itemKey{in.Key}
		}
	case *dynamodb.DeleteItemInput:
		if aws.ToString(in.TableName) == c.World.Table {
			return []itemKey{in.Key}
		}
	case *dynamodb.TransactWriteItemsInput:
		var keys []itemKey
		for _, w := range in.TransactItems {
			switch {
			case w.Update != nil && aws.ToString(w.Update.TableName) == c.World.Table:
				keys = append(keys, w.Update.Key)
			case w.Delete != nil && aws.ToString(w.Delete.TableName) == c.World.Table:
				keys = append(keys, w.Delete.Key)
			case w.Put != nil && aws.ToString(w.Put.TableName) == c.World.Table:
				keys = append(keys, c.keyOf(w.Put.Item))
			}
		}
		return keys
	}
	return nil
}

// keyOf is the key of an item of the table.
func (c *Crew) keyOf(item itemKey) itemKey {
	out, err := c.Sim.DescribeTable(context.Background(), &dynamodb.DescribeTableInput{TableName: &c.World.Table})
	if err != nil {
		return nil
	}
	key := itemKey{}
	for _, part := range out.Table.KeySchema {
		key[*part.AttributeName] = item[*part.AttributeName]
	}
	return key
}

func (c *Crew) item(key itemKey) change.Item {
	out, err := c.Sim.GetItem(context.Background(), &dynamodb.GetItemInput{TableName: &c.World.Table, Key: key,
		ConsistentRead: aws.Bool(true)})
	if err != nil || len(out.Item) == 0 {
		return nil
	}
	return attributes.ItemFromTable(out.Item)
}
