package projections

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/awscall"
)

const (
	batchGetMax = 100         // keys in one BatchGetItem (DynamoDB API)
	retryTotal  = time.Minute // then the caller's driver tries the records again
)

type (
	row     = map[string]ddb.AttributeValue
	rowKeys = map[string]ddb.AttributeValue
)

// attempt calls f until it succeeds, fails for good, or a minute has passed.
func attempt[T any](ctx context.Context, rd *reader, doing string, f func() (T, error)) (T, error) {
	sent := false
	out, err := awscall.Persist(ctx, retryTotal, func() (T, error) {
		if sent {
			rd.counters.Retries.Add(1)
		}
		sent = true
		out, err := f()
		rd.counters.refused(err)
		return out, err
	})
	if err != nil {
		return out, fmt.Errorf("%s: %w", doing, err)
	}
	return out, nil
}

// every calls f for 0 to n-1, several at once, and returns all that they return.
func every(ctx context.Context, n int, f func(context.Context, int) error) []error {
	errs := make([]error, n)
	var g errgroup.Group
	g.SetLimit(writesAtOnce)
	for i := range n {
		g.Go(func() error {
			errs[i] = f(ctx, i)
			return nil
		})
	}
	_ = g.Wait() // of functions that return nil
	return errs
}

// each calls f for 0 to n-1, several at once, and begins no more of them once
// one has failed. The error that it returns is that of the lowest number, not
// the one that came first.
func each(ctx context.Context, n int, f func(context.Context, int) error) error {
	errs := make([]error, n)
	var failed atomic.Bool
	var g errgroup.Group
	g.SetLimit(writesAtOnce)
	for i := 0; i < n && !failed.Load(); i++ {
		g.Go(func() error {
			if errs[i] = f(ctx, i); errs[i] != nil {
				failed.Store(true)
			}
			return nil
		})
	}
	_ = g.Wait() // of functions that return nil
	return cmp.Or(errs...)
}

// update sends one UpdateItem for a rule. It reports false if its condition failed.
func (ts *tables) update(ctx context.Context, rule, doing string, in *dynamodb.UpdateItemInput) (bool, error) {
	_, err := ts.updateItem(ctx, rule, doing, in)
	if err != nil && classify(err) == classCondition {
		return false, nil
	}
	return err == nil, err
}

func (ts *tables) updateItem(ctx context.Context, rule, doing string, in *dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput, error) {
	ts.counters.Writes.Add(1)
	in.ReturnConsumedCapacity = ddb.ReturnConsumedCapacityTotal
	return write(ctx, ts, doing, []string{rule}, writeUnitsMin,
		func() (*dynamodb.UpdateItemOutput, error) { return ts.client.UpdateItem(ctx, in) },
		func(out *dynamodb.UpdateItemOutput) float64 { return unitsOfOne(out.ConsumedCapacity) })
}

// putState sends one PutItem to the state table. rule is its id, "" for none.
func (ts *tables) putState(ctx context.Context, rule, doing string, in *dynamodb.PutItemInput) error {
	in.TableName, in.ReturnConsumedCapacity = &ts.stateTable, ddb.ReturnConsumedCapacityTotal
	_, err := write(ctx, ts, doing, []string{rule}, writeUnitsMin,
		func() (*dynamodb.PutItemOutput, error) { return ts.client.PutItem(ctx, in) },
		func(out *dynamodb.PutItemOutput) float64 { return unitsOfOne(out.ConsumedCapacity) })
	return err
}

// deleteState sends one DeleteItem to the state table for a rule. An item that no longer
// meets the condition ("" for none) stays, and that is no error.
func (ts *tables) deleteState(ctx context.Context, rule, doing string, key stateKey, condition string, c *expression) error {
	in := &dynamodb.DeleteItemInput{
		TableName: &ts.stateTable, Key: key.attributes(), ConditionExpression: optional(condition),
		ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
	}
	return ts.delete(ctx, rule, doing, in)
}

// delete sends one DeleteItem. An item that does not meet the condition stays, and that is no error.
func (ts *tables) delete(ctx context.Context, rule, doing string, in *dynamodb.DeleteItemInput) error {
	in.ReturnConsumedCapacity = ddb.ReturnConsumedCapacityTotal
	_, err := write(ctx, ts, doing, []string{rule}, writeUnitsMin,
		func() (*dynamodb.DeleteItemOutput, error) { return ts.client.DeleteItem(ctx, in) },
		func(out *dynamodb.DeleteItemOutput) float64 { return unitsOfOne(out.ConsumedCapacity) })
	if err != nil && classify(err) == classCondition {
		return nil
	}
	return err
}

// deleteItem sends one DeleteItem to the user's table for a rule. An item that does
// not meet the condition stays, and that is no error.
func (ts *tables) deleteItem(ctx context.Context, rule, doing string, key change.Key, condition string, c *expression) error {
	ts.counters.Writes.Add(1)
	return ts.delete(ctx, rule, doing, &dynamodb.DeleteItemInput{
		TableName: &ts.table, Key: ts.itemKey(key), ConditionExpression: &condition,
		ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
	})
}

// transact sends one transaction. owners are the ids of the rules that its
// actions serve, one for each or one for all of them, "" for none.
func (ts *tables) transact(ctx context.Context, doing string, owners []string, items []ddb.TransactWriteItem) error {
	ts.counters.Writes.Add(1)
	ts.counters.Transactions.Add(1)
	in := &dynamodb.TransactWriteItemsInput{TransactItems: items, ReturnConsumedCapacity: ddb.ReturnConsumedCapacityTotal}
	_, err := write(ctx, ts, doing, owners, transactionUnitsMin*len(items),
		func() (*dynamodb.TransactWriteItemsOutput, error) { return ts.client.TransactWriteItems(ctx, in) },
		func(out *dynamodb.TransactWriteItemsOutput) float64 { return unitsOf(out.ConsumedCapacity...) })
	return err
}

// wanted are keys to be read from one table.
type wanted struct {
	table string
	keys  []rowKeys
}

// read gets items of up to two tables, consistently, each of them for itself. Every
// key must differ from the others. The order of the answer has no meaning.
func (rd *reader) read(ctx context.Context, doing string, tables ...wanted) (map[string][]row, error) {
	found := map[string][]row{}
	request, size := map[string]ddb.KeysAndAttributes{}, 0
	flush := func() error {
		for len(request) > 0 {
			out, err := attempt(ctx, rd, doing, func() (*dynamodb.BatchGetItemOutput, error) {
				out, err := rd.reads.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: request})
				if err == nil && len(out.Responses) == 0 && len(out.UnprocessedKeys) > 0 {
					err = &ddb.ProvisionedThroughputExceededException{}
				}
				return out, err
			})
			if err != nil {
				return err
			}
			for table, rows := range out.Responses {
				found[table] = append(found[table], rows...)
			}
			request = out.UnprocessedKeys
		}
		request, size = map[string]ddb.KeysAndAttributes{}, 0
		return nil
	}
	for _, w := range tables {
		for _, key := range w.keys {
			ka := request[w.table]
			ka.ConsistentRead, ka.Keys = new(true), append(ka.Keys, key)
			request[w.table] = ka
			if size++; size == batchGetMax {
				if err := flush(); err != nil {
					return nil, err
				}
			}
		}
	}
	return found, flush()
}

// getState reads one row of the state table by a request of its own; nil if there is none.
func (rd *reader) getState(ctx context.Context, doing string, key stateKey) (row, error) {
	out, err := attempt(ctx, rd, doing, func() (*dynamodb.GetItemOutput, error) {
		return rd.reads.GetItem(ctx, &dynamodb.GetItemInput{TableName: &rd.stateTable, Key: key.attributes(), ConsistentRead: new(true)})
	})
	if err != nil || len(out.Item) == 0 {
		return nil, err
	}
	return out.Item, nil
}

// readState gets items of the state table.
func (rd *reader) readState(ctx context.Context, doing string, keys []stateKey) (map[stateKey]row, error) {
	found, err := rd.read(ctx, doing, wanted{rd.stateTable, stateKeys(keys)})
	return byStateKey(found[rd.stateTable]), err
}

// readItems gets items of the user's table.
func (rd *reader) readItems(ctx context.Context, doing string, keys []change.Key) (map[change.Key]change.Item, error) {
	found, err := rd.read(ctx, doing, wanted{rd.table, rd.itemKeys(keys)})
	return rd.byItemKey(found[rd.table]), err
}

func stateKeys(keys []stateKey) []rowKeys {
	seen := map[stateKey]bool{}
	var out []rowKeys
	for _, k := range keys {
		if !seen[k] {
			seen[k] = true
			out = append(out, k.attributes())
		}
	}
	return out
}

func byStateKey(rows []row) map[stateKey]row {
	m := make(map[stateKey]row, len(rows))
	for _, r := range rows {
		m[stateKeyOf(r)] = r
	}
	return m
}

func (rd *reader) itemKeys(keys []change.Key) []rowKeys {
	seen := map[change.Key]bool{}
	var out []rowKeys
	for _, k := range keys {
		if !seen[k] && rd.canExist(k) { // DynamoDB refuses a whole batch for one key that cannot be
			seen[k] = true
			out = append(out, rd.itemKey(k))
		}
	}
	return out
}

func (rd *reader) byItemKey(rows []row) map[change.Key]change.Item {
	m := make(map[change.Key]change.Item, len(rows))
	for _, r := range rows {
		m[rd.keyOf(r)] = attributes.ItemFromTable(r)
	}
	return m
}

// image is an item as an Image: nil, not a nil Item, where there is none.
func image(it change.Item) change.Image {
	if it == nil {
		return nil
	}
	return it
}

// stateUpdate is an UpdateItem on the state table.
func (ts *tables) stateUpdate(key stateKey, update, condition string, c *expression) *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{
		TableName: &ts.stateTable, Key: key.attributes(), UpdateExpression: &update, ConditionExpression: optional(condition),
		ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
	}
}

// query reads one page of a query.
func (rd *reader) query(ctx context.Context, doing string, in *dynamodb.QueryInput) (*dynamodb.QueryOutput, error) {
	return attempt(ctx, rd, doing, func() (*dynamodb.QueryOutput, error) { return rd.reads.Query(ctx, in) })
}

// stateQuery is a consistent query of the state table.
func (rd *reader) stateQuery(condition string, c *expression) *dynamodb.QueryInput {
	return &dynamodb.QueryInput{
		TableName: &rd.stateTable, ConsistentRead: new(true), KeyConditionExpression: &condition,
		ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
	}
}

// queryPages calls f for every page of a query.
func (rd *reader) queryPages(ctx context.Context, doing string, in *dynamodb.QueryInput, f func([]row) error) error {
	for {
		out, err := rd.query(ctx, doing, in)
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

// updatePart is an update of a row as a part of a transaction; condition "" for none.
func (rd *reader) updatePart(key stateKey, update, condition string, c *expression) ddb.TransactWriteItem {
	return ddb.TransactWriteItem{Update: &ddb.Update{
		TableName: &rd.stateTable, Key: key.attributes(), UpdateExpression: &update, ConditionExpression: optional(condition),
		ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
	}}
}

// checkPart is a condition on a row as a part of a transaction.
func (rd *reader) checkPart(key stateKey, condition string, c *expression) ddb.TransactWriteItem {
	return ddb.TransactWriteItem{ConditionCheck: &ddb.ConditionCheck{
		TableName: &rd.stateTable, Key: key.attributes(), ConditionExpression: &condition,
		ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
	}}
}

// putPart is a row as a part of a transaction; condition "" for none.
func (rd *reader) putPart(r row, condition string, c *expression) ddb.TransactWriteItem {
	return ddb.TransactWriteItem{Put: &ddb.Put{
		TableName: &rd.stateTable, Item: r, ConditionExpression: optional(condition),
		ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
	}}
}

// deletePart is the end of a row as a part of a transaction; condition "" for none.
func (rd *reader) deletePart(key stateKey, condition string, c *expression) ddb.TransactWriteItem {
	return ddb.TransactWriteItem{Delete: &ddb.Delete{
		TableName: &rd.stateTable, Key: key.attributes(), ConditionExpression: optional(condition),
		ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
	}}
}

// optional is an expression of a request; nil where the text is empty.
func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
