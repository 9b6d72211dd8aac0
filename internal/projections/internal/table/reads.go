package table

import (
	"context"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
)

// BatchGetMax is how many keys one BatchGetItem takes (DynamoDB API).
const BatchGetMax = 100

// ReadBoth gets items of the user's table and rows of the state table, each consistently by itself.
func (rd *Reader) ReadBoth(ctx context.Context, doing string, items []change.Key, rows []Key) (map[change.Key]change.Item, map[Key]Row,
	error) {
	type place struct {
		table string
		key   Row
	}
	var wanted []place
	for _, k := range distinct(items) {
		if rd.CanExist(k) { // DynamoDB refuses a whole batch for one key that cannot be
			wanted = append(wanted, place{rd.Table, rd.ItemKey(k)})
		}
	}
	for _, k := range distinct(rows) {
		wanted = append(wanted, place{rd.StateTable, k.Attributes()})
	}
	var mu sync.Mutex
	byItem, byRow := make(map[change.Key]change.Item, len(items)), make(map[Key]Row, len(rows))
	batches := slices.Collect(slices.Chunk(wanted, BatchGetMax))
	err := rd.Each(ctx, len(batches), func(ctx context.Context, i int) error {
		request := map[string]ddb.KeysAndAttributes{}
		for _, one := range batches[i] {
			request[one.table] = ddb.KeysAndAttributes{ConsistentRead: new(true), Keys: append(request[one.table].Keys, one.key)}
		}
		for len(request) > 0 {
			out, err := rd.getBatch(ctx, doing, request)
			if err != nil {
				return err
			}
			mu.Lock()
			for _, r := range out.Responses[rd.Table] {
				byItem[rd.KeyOf(r)] = attributes.ItemFromTable(r)
			}
			for _, r := range out.Responses[rd.StateTable] {
				byRow[KeyOf(r)] = r
			}
			mu.Unlock()
			request = out.UnprocessedKeys
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	return byItem, byRow, nil
}

// getBatch sends one BatchGetItem. An answer without any item is a throttled request.
func (rd *Reader) getBatch(ctx context.Context, doing string, request map[string]ddb.KeysAndAttributes) (*dynamodb.BatchGetItemOutput,
	error) {
	return Attempt(ctx, rd, doing, func() (*dynamodb.BatchGetItemOutput, error) {
		out, err := rd.reads.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: request})
		if err == nil && len(out.Responses) == 0 && len(out.UnprocessedKeys) > 0 {
			err = &ddb.ProvisionedThroughputExceededException{}
		}
		return out, err
	})
}

// distinct leaves out what comes again.
func distinct[T comparable](all []T) []T {
	seen := make(map[T]bool, len(all))
	return slices.DeleteFunc(slices.Clone(all), func(one T) bool {
		again := seen[one]
		seen[one] = true
		return again
	})
}

// GetState reads one row of the state table by a request of its own; nil if there is none.
func (rd *Reader) GetState(ctx context.Context, doing string, key Key) (Row, error) {
	out, err := Attempt(ctx, rd, doing, func() (*dynamodb.GetItemOutput, error) {
		return rd.reads.GetItem(ctx, &dynamodb.GetItemInput{TableName: &rd.StateTable, Key: key.Attributes(), ConsistentRead: new(true)})
	})
	if err != nil || len(out.Item) == 0 {
		return nil, err
	}
	return out.Item, nil
}

// ReadState gets rows of the state table.
func (rd *Reader) ReadState(ctx context.Context, doing string, keys []Key) (map[Key]Row, error) {
	_, rows, err := rd.ReadBoth(ctx, doing, nil, keys)
	return rows, err
}

// ReadItems gets items of the user's table.
func (rd *Reader) ReadItems(ctx context.Context, doing string, keys []change.Key) (map[change.Key]change.Item, error) {
	items, _, err := rd.ReadBoth(ctx, doing, keys, nil)
	return items, err
}

// Image is an item as an Image: nil, not a nil Item, where there is none.
func Image(it change.Item) change.Image {
	if it == nil {
		return nil
	}
	return it
}

// Query reads one page of a query.
func (rd *Reader) Query(ctx context.Context, doing string, in *dynamodb.QueryInput) (*dynamodb.QueryOutput, error) {
	return Attempt(ctx, rd, doing, func() (*dynamodb.QueryOutput, error) { return rd.reads.Query(ctx, in) })
}

// StateQuery is a consistent query of the state table.
func (rd *Reader) StateQuery(condition string, c *Expression) *dynamodb.QueryInput {
	return &dynamodb.QueryInput{
		TableName: &rd.StateTable, ConsistentRead: new(true), KeyConditionExpression: &condition,
		ExpressionAttributeNames: c.Names, ExpressionAttributeValues: c.Values,
	}
}

// EachRow calls f for every row of a partition of the state table, in the order of the sort keys.
func (rd *Reader) EachRow(ctx context.Context, doing, partition string, f func(Row)) error {
	c := NewExpression()
	in := rd.StateQuery(c.Format("%n = %v", PK, Text(partition)), c)
	return rd.QueryPages(ctx, doing, in, func(rows []Row) error {
		for _, r := range rows {
			f(r)
		}
		return nil
	})
}

// QueryPages calls f for every page of a query.
func (rd *Reader) QueryPages(ctx context.Context, doing string, in *dynamodb.QueryInput, f func([]Row) error) error {
	for {
		out, err := rd.Query(ctx, doing, in)
		if err != nil {
			return err
		}
		if err := f(out.Items); err != nil {
			return err
		}
		if in.ExclusiveStartKey = out.LastEvaluatedKey; len(in.ExclusiveStartKey) == 0 {
			return nil
		}
	}
}
