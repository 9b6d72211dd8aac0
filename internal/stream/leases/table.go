package leases

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Client is what the lease table needs of *dynamodb.Client.
type Client interface {
	CreateTable(ctx context.Context, in *dynamodb.CreateTableInput, opts ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error)
	DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput, opts ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
	GetItem(ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	Scan(ctx context.Context, in *dynamodb.ScanInput, opts ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
	PutItem(ctx context.Context, in *dynamodb.PutItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error)
}

var _ Client = (*dynamodb.Client)(nil)

// tableCreateMax bounds the wait for a new lease table to become usable. The wait
// describes the table every tableCreateEvery.
const (
	tableCreateMax   = 2 * time.Minute
	tableCreateEvery = 500 * time.Millisecond
)

// Table keeps the leases in a DynamoDB table, one row a shard. Every write
// of an owner raises its row's counter and is conditional on it.
type Table struct {
	client Client
	table  string
}

var _ Store = (*Table)(nil)

// NewTable returns the leases in the table of that name. Load creates it on demand.
func NewTable(client Client, tableName string) *Table {
	return &Table{client: client, table: tableName}
}

// Load reads every row, consistently. It creates the table if it is missing.
func (t *Table) Load(ctx context.Context) ([]Lease, error) {
	leases, exists, err := t.Read(ctx)
	if err != nil || exists {
		return leases, err
	}
	if err := t.create(ctx); err != nil {
		return nil, fmt.Errorf("creating lease table %s: %w", t.table, err)
	}
	return t.scan(ctx)
}

// Read reads every row, consistently. exists is false if there is no table, and none is created.
func (t *Table) Read(ctx context.Context) (rows []Lease, exists bool, err error) {
	rows, err = t.scan(ctx)
	if _, missing := errors.AsType[*ddb.ResourceNotFoundException](err); missing {
		return nil, false, nil
	}
	return rows, true, err
}

func (t *Table) scan(ctx context.Context) ([]Lease, error) {
	var leases []Lease
	pages := dynamodb.NewScanPaginator(t.client, &dynamodb.ScanInput{TableName: &t.table, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		out, err := pages.NextPage(ctx)
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
	}
	return leases, nil
}

// Get reads one row, consistently.
func (t *Table) Get(ctx context.Context, shard string) (Lease, error) {
	out, err := t.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &t.table, Key: keyOf(shard), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return Lease{}, fmt.Errorf("reading lease %s: %w", shard, err)
	}
	if len(out.Item) == 0 {
		return Lease{}, nil
	}
	return leaseFromItem(out.Item)
}

func keyOf(shard string) map[string]ddb.AttributeValue {
	return map[string]ddb.AttributeValue{attrKey: text(shard)}
}

func (t *Table) create(ctx context.Context) error {
	_, err := t.client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:            &t.table,
		BillingMode:          ddb.BillingModePayPerRequest,
		AttributeDefinitions: []ddb.AttributeDefinition{{AttributeName: aws.String(attrKey), AttributeType: ddb.ScalarAttributeTypeS}},
		KeySchema:            []ddb.KeySchemaElement{{AttributeName: aws.String(attrKey), KeyType: ddb.KeyTypeHash}},
	})
	if _, exists := errors.AsType[*ddb.ResourceInUseException](err); err != nil && !exists {
		return err
	}
	active := dynamodb.NewTableExistsWaiter(t.client, func(o *dynamodb.TableExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = tableCreateEvery, tableCreateEvery
	})
	table := &dynamodb.DescribeTableInput{TableName: &t.table}
	if active.Wait(ctx, table, tableCreateMax) == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err() // the caller's time is over: only this error says so
	}
	out, err := t.client.DescribeTable(ctx, table) // a process that was frozen meanwhile had no time left to look
	if err == nil && out.Table.TableStatus != ddb.TableStatusActive {
		err = fmt.Errorf("it is not active after %s", tableCreateMax)
	}
	return err
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

// Delete removes one row.
func (t *Table) Delete(ctx context.Context, lease Lease) error {
	_, err := t.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName:                 &t.table,
		Key:                       keyOf(lease.Shard),
		ConditionExpression:       aws.String("#counter = :counter"),
		ExpressionAttributeNames:  map[string]string{"#counter": attrCounter},
		ExpressionAttributeValues: map[string]ddb.AttributeValue{":counter": number(lease.Counter)},
	})
	if _, conflict := errors.AsType[*ddb.ConditionalCheckFailedException](err); conflict {
		err = ErrLost
	}
	if err != nil {
		return fmt.Errorf("deleting lease %s: %w", lease.Shard, err)
	}
	return nil
}
