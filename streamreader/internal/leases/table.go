package leases

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/guard"
)

// Client is what the lease table needs of *dynamodb.Client.
type Client interface {
	CreateTable(ctx context.Context, in *dynamodb.CreateTableInput, opts ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error)
	DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput, opts ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
	Scan(ctx context.Context, in *dynamodb.ScanInput, opts ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
	PutItem(ctx context.Context, in *dynamodb.PutItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error)
}

var _ Client = (*dynamodb.Client)(nil)

// tableCreateMax bounds the wait for a new lease table to become usable, which
// is asked for each tableCreateEvery.
const (
	tableCreateMax   = 2 * time.Minute
	tableCreateEvery = 500 * time.Millisecond
)

// Table keeps the leases in a DynamoDB table, one row a shard. Every write
// to a row but that of a request raises its counter and is conditional on it.
type Table struct {
	client Client
	table  string
}

var _ Store = (*Table)(nil)

// NewTable returns the leases in the table of that name, by default the
// user's table's name with "-dynamill-leases" behind it. Load creates the
// table, on demand, if it does not exist.
func NewTable(client Client, tableName string) *Table {
	return &Table{client: client, table: tableName}
}

// Load reads every row, consistently. It creates the table if it is missing.
func (t *Table) Load(ctx context.Context) ([]Lease, error) {
	leases, err := t.scan(ctx)
	var missing *ddb.ResourceNotFoundException
	if !errors.As(err, &missing) {
		return leases, err
	}
	if err := t.create(ctx); err != nil {
		return nil, fmt.Errorf("creating lease table %s: %w", t.table, err)
	}
	return t.scan(ctx)
}

func (t *Table) scan(ctx context.Context) ([]Lease, error) {
	var leases []Lease
	in := &dynamodb.ScanInput{TableName: &t.table, ConsistentRead: aws.Bool(true)}
	for {
		out, err := t.client.Scan(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("reading lease table %s: %w", t.table, err)
		}
		for _, item := range out.Items {
			lease, err := leaseFromItem(item)
			if err != nil {
				return nil, fmt.Errorf("reading lease table %s: %w", t.table, err)
			}
			leases = append(leases, lease)
		}
		if len(out.LastEvaluatedKey) == 0 {
			return leases, nil
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

func (t *Table) create(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, tableCreateMax)
	defer cancel()
	_, err := t.client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:            &t.table,
		BillingMode:          ddb.BillingModePayPerRequest,
		AttributeDefinitions: []ddb.AttributeDefinition{{AttributeName: aws.String(attrKey), AttributeType: ddb.ScalarAttributeTypeS}},
		KeySchema:            []ddb.KeySchemaElement{{AttributeName: aws.String(attrKey), KeyType: ddb.KeyTypeHash}},
	})
	var exists *ddb.ResourceInUseException
	if err != nil && !errors.As(err, &exists) {
		return err
	}
	for {
		out, err := t.client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &t.table})
		var notYet *ddb.ResourceNotFoundException
		switch {
		case err != nil && !errors.As(err, &notYet): // a new table may not be visible at once
			return err
		case err == nil && out.Table != nil && out.Table.TableStatus == ddb.TableStatusActive:
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(tableCreateEvery):
		}
	}
}

// Create adds a row if the shard has none.
func (t *Table) Create(ctx context.Context, lease Lease) (Lease, error) {
	_, err := t.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName:                           &t.table,
		Item:                                leaseToItem(lease),
		ConditionExpression:                 aws.String("attribute_not_exists(#key)"),
		ExpressionAttributeNames:            map[string]string{"#key": attrKey},
		ReturnValuesOnConditionCheckFailure: ddb.ReturnValuesOnConditionCheckFailureAllOld,
	})
	var exists *ddb.ConditionalCheckFailedException
	switch {
	case errors.As(err, &exists) && len(exists.Item) > 0:
		return leaseFromItem(exists.Item)
	case err != nil:
		return lease, fmt.Errorf("creating lease %s: %w", lease.Shard, err)
	}
	return lease, nil
}

// The attributes that each write changes.
var (
	claimWrites   = []string{attrOwner, attrCheckpointOwner, attrCounter, attrSwitches, attrEmptyPolls}
	renewWrites   = []string{attrCounter, attrEmptyPolls, attrNewest}
	saveWrites    = []string{attrCounter, attrEmptyPolls, attrNewest, attrCheckpoint, attrSwitches, attrChildren, attrLabel, attrPartitionKey, attrSortKey}
	releaseWrites = append(slices.Clone(saveWrites), attrOwner, attrCheckpointOwner)
	requestWrites = []string{attrOwner, attrCheckpointOwner}
)

// Claim makes worker the row's owner.
func (t *Table) Claim(ctx context.Context, lease Lease, worker string) (Lease, error) {
	return t.update(ctx, "claiming", lease, worker, claimWrites, func(row Lease) Lease { return row.claimedBy(worker) })
}

// Renew raises the counter.
func (t *Table) Renew(ctx context.Context, lease Lease) (Lease, error) {
	return t.update(ctx, "renewing", lease, lease.Owner, renewWrites, func(row Lease) Lease { return row.renewed(lease) })
}

// Save writes what the owner has to say.
func (t *Table) Save(ctx context.Context, lease Lease) (Lease, error) {
	return t.update(ctx, "checkpointing", lease, lease.Owner, saveWrites, func(row Lease) Lease { return row.saved(lease) })
}

// Release gives the row up.
func (t *Table) Release(ctx context.Context, lease Lease) (Lease, error) {
	return t.update(ctx, "releasing", lease, lease.Owner, releaseWrites, func(row Lease) Lease { return row.released(lease) })
}

// update writes to the row if nobody else has since it was read. A write of
// this worker whose answer was lost may have raised the counter: the owner
// tells, for its name is this process's alone and each shard has one goroutine
// here. A request that came between changes neither.
func (t *Table) update(ctx context.Context, doing string, row Lease, worker string, writes []string, change func(Lease) Lease) (Lease, error) {
	for range updateAttemptsMax {
		out, err := t.client.UpdateItem(ctx, t.updateInput(row, change(row), writes, ownerCondition(writes, row)))
		var conflict *ddb.ConditionalCheckFailedException
		if !errors.As(err, &conflict) {
			if err == nil {
				return leaseFromItem(out.Attributes)
			}
			return row, fmt.Errorf("%s lease %s: %w", doing, row.Shard, err)
		}
		now, err := leaseFromItem(conflict.Item)
		if err != nil {
			break // deleted
		}
		mine := worker != "" && now.Owner == worker
		if !mine && !row.holds(now) {
			row = now
			break // somebody else's
		}
		row = now
	}
	return row, fmt.Errorf("%s lease %s: %w", doing, row.Shard, ErrLost)
}

// updateAttemptsMax: the second attempt knows the counter that the first one
// found, a third the request that has come since; a fourth would mean that
// somebody keeps writing.
const updateAttemptsMax = 3

// ownerCondition says in which state the row must be. Who writes the owner's
// attributes must know both as they are; else one of them must name the owner.
// The counter alone begins anew where the table was deleted and made again.
func ownerCondition(writes []string, row Lease) string {
	const counter = "#counter = :counter AND "
	switch {
	case guard.Off(guard.CheckpointFenced) && !slices.Contains(writes, attrOwner):
		return "attribute_exists(#counter)"
	case row.Owner == "":
		return counter + "attribute_not_exists(#owner)"
	case !slices.Contains(writes, attrOwner):
		return counter + "(#current = :held OR attribute_not_exists(#current) AND #owner = :held)"
	case row.Next == "":
		return counter + "attribute_not_exists(#current) AND #owner = :held"
	}
	return counter + "#current = :held AND #owner = :asked"
}

// updateInput sets the named attributes as next has them, and removes those
// that it has not.
func (t *Table) updateInput(row, next Lease, writes []string, condition string) *dynamodb.UpdateItemInput {
	names, values := map[string]string{}, map[string]ddb.AttributeValue{}
	var set, remove []string
	item := leaseToItem(next)
	for i, name := range writes {
		place := fmt.Sprintf("#w%d", i)
		names[place] = name
		if av, ok := item[name]; ok {
			value := fmt.Sprintf(":w%d", i)
			values[value] = av
			set = append(set, place+" = "+value)
		} else {
			remove = append(remove, place)
		}
	}
	expression := "SET " + strings.Join(set, ", ")
	if len(remove) > 0 {
		expression += " REMOVE " + strings.Join(remove, ", ")
	}
	for place, name := range map[string]string{"#counter": attrCounter, "#owner": attrOwner, "#current": attrCheckpointOwner} {
		if strings.Contains(condition, place) {
			names[place] = name
		}
	}
	for place, value := range map[string]ddb.AttributeValue{":counter": number(row.Counter), ":held": text(row.Owner), ":asked": text(row.Next)} {
		if strings.Contains(condition, place) {
			values[place] = value
		}
	}
	return &dynamodb.UpdateItemInput{
		TableName:                           &t.table,
		Key:                                 map[string]ddb.AttributeValue{attrKey: text(row.Shard)},
		UpdateExpression:                    &expression,
		ConditionExpression:                 &condition,
		ExpressionAttributeNames:            names,
		ExpressionAttributeValues:           values,
		ReturnValues:                        ddb.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: ddb.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// Request names the next owner. The counter stays as it is: only what the
// owner itself writes may make it look alive.
func (t *Table) Request(ctx context.Context, lease Lease, worker string) (Lease, error) {
	if lease.Owner == "" {
		return lease, fmt.Errorf("asking for lease %s, which nobody has: %w", lease.Shard, ErrLost)
	}
	lease.Next = ""
	next := lease
	next.Next = worker
	return t.rename(ctx, "asking for", lease, next)
}

// Withdraw takes a request back.
func (t *Table) Withdraw(ctx context.Context, lease Lease, worker string) error {
	lease.Next = worker
	next := lease
	next.Next = ""
	now, err := t.rename(ctx, "withdrawing from", lease, next)
	if errors.Is(err, ErrLost) && now.Owner == worker {
		_, err = t.Release(ctx, now)
	}
	return err
}

// rename writes who is and who shall be owner, whatever the counter.
func (t *Table) rename(ctx context.Context, doing string, row, next Lease) (Lease, error) {
	condition, _ := strings.CutPrefix(ownerCondition(requestWrites, row), "#counter = :counter AND ")
	out, err := t.client.UpdateItem(ctx, t.updateInput(row, next, requestWrites, condition))
	var conflict *ddb.ConditionalCheckFailedException
	switch {
	case errors.As(err, &conflict):
		if now, broken := leaseFromItem(conflict.Item); broken == nil {
			row = now
		}
		return row, fmt.Errorf("%s lease %s: %w", doing, row.Shard, ErrLost)
	case err != nil:
		return row, fmt.Errorf("%s lease %s: %w", doing, row.Shard, err)
	}
	return leaseFromItem(out.Attributes)
}

// Delete removes one row.
func (t *Table) Delete(ctx context.Context, lease Lease) error {
	_, err := t.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName:                 &t.table,
		Key:                       map[string]ddb.AttributeValue{attrKey: text(lease.Shard)},
		ConditionExpression:       aws.String("#counter = :counter"),
		ExpressionAttributeNames:  map[string]string{"#counter": attrCounter},
		ExpressionAttributeValues: map[string]ddb.AttributeValue{":counter": number(lease.Counter)},
	})
	var conflict *ddb.ConditionalCheckFailedException
	if errors.As(err, &conflict) {
		err = ErrLost
	}
	if err != nil {
		return fmt.Errorf("deleting lease %s: %w", lease.Shard, err)
	}
	return nil
}

// Forget deletes every row of a stream.
func (t *Table) Forget(ctx context.Context, streamARN string) error {
	leases, err := t.Load(ctx)
	if err != nil {
		return err
	}
	for _, l := range leases {
		if l.Stream != streamARN {
			continue
		}
		_, err := t.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
			TableName: &t.table,
			Key:       map[string]ddb.AttributeValue{attrKey: text(l.Shard)},
		})
		if err != nil {
			return fmt.Errorf("forgetting lease %s: %w", l.Shard, err)
		}
	}
	return nil
}
