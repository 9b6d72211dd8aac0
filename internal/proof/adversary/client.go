package adversary

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/stream/leases"
	"github.com/dynamill/dynamill/internal/streamreader"
)

// client is the DynamoDB of one worker: the simulator behind the gate.
type client struct {
	crew   *Crew
	worker *Worker
}

var (
	_ projections.Client   = (*client)(nil)
	_ streamreader.Streams = (*client)(nil)
	_ leases.Client        = (*client)(nil)
)

// through passes a call through the gate.
func through[In, Out, Options any](ctx context.Context, c *client, op string, in *In,
	f func(context.Context, *In, ...func(*Options)) (*Out, error)) (*Out, error) {
	var out *Out
	err := c.crew.gate.do(ctx, c.worker, op, in, func() (err error) {
		out, err = f(context.WithoutCancel(ctx), in)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// DescribeTable is the SDK client's method.
func (c *client) DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput,
	_ ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	return through(ctx, c, "DescribeTable", in, c.crew.Sim.DescribeTable)
}

// CreateTable is the SDK client's method.
func (c *client) CreateTable(ctx context.Context, in *dynamodb.CreateTableInput, _ ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput,
	error) {
	return through(ctx, c, "CreateTable", in, c.crew.Sim.CreateTable)
}

// DescribeTimeToLive is the SDK client's method.
func (c *client) DescribeTimeToLive(ctx context.Context, in *dynamodb.DescribeTimeToLiveInput,
	_ ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error) {
	return through(ctx, c, "DescribeTimeToLive", in, c.crew.Sim.DescribeTimeToLive)
}

// UpdateTimeToLive is the SDK client's method.
func (c *client) UpdateTimeToLive(ctx context.Context, in *dynamodb.UpdateTimeToLiveInput,
	_ ...func(*dynamodb.Options)) (*dynamodb.UpdateTimeToLiveOutput, error) {
	return through(ctx, c, "UpdateTimeToLive", in, c.crew.Sim.UpdateTimeToLive)
}

// GetItem is the SDK client's method.
func (c *client) GetItem(ctx context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return through(ctx, c, "GetItem", in, c.crew.Sim.GetItem)
}

// PutItem is the SDK client's method.
func (c *client) PutItem(ctx context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return through(ctx, c, "PutItem", in, c.crew.Sim.PutItem)
}

// UpdateItem is the SDK client's method.
func (c *client) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput,
	error) {
	return through(ctx, c, "UpdateItem", in, c.crew.Sim.UpdateItem)
}

// DeleteItem is the SDK client's method.
func (c *client) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput,
	error) {
	return through(ctx, c, "DeleteItem", in, c.crew.Sim.DeleteItem)
}

// Query is the SDK client's method.
func (c *client) Query(ctx context.Context, in *dynamodb.QueryInput, _ ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return through(ctx, c, "Query", in, func(ctx context.Context, in *dynamodb.QueryInput,
		_ ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
		in.Limit = c.crew.limit(in.Limit)
		return c.crew.Sim.Query(ctx, in)
	})
}

// Scan is the SDK client's method.
func (c *client) Scan(ctx context.Context, in *dynamodb.ScanInput, _ ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	return through(ctx, c, "Scan", in, func(ctx context.Context, in *dynamodb.ScanInput, _ ...func(*dynamodb.Options)) (*dynamodb.ScanOutput,
		error) {
		in.Limit = c.crew.limit(c.crew.page(in.Limit))
		return c.crew.Sim.Scan(ctx, in)
	})
}

// BatchGetItem is the SDK client's method.
func (c *client) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput,
	_ ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	return through(ctx, c, "BatchGetItem", in, c.crew.Sim.BatchGetItem)
}

// TransactWriteItems is the SDK client's method.
func (c *client) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput,
	_ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return through(ctx, c, "TransactWriteItems", in, c.crew.Sim.TransactWriteItems)
}

// BatchExecuteStatement is the SDK client's method.
func (c *client) BatchExecuteStatement(ctx context.Context, in *dynamodb.BatchExecuteStatementInput,
	_ ...func(*dynamodb.Options)) (*dynamodb.BatchExecuteStatementOutput, error) {
	return through(ctx, c, "BatchExecuteStatement", in, c.crew.Sim.BatchExecuteStatement)
}

// DescribeStream is the SDK client's method.
func (c *client) DescribeStream(ctx context.Context, in *dynamodbstreams.DescribeStreamInput,
	_ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error) {
	return through(ctx, c, "DescribeStream", in, c.crew.Sim.DescribeStream)
}

// GetShardIterator is the SDK client's method.
func (c *client) GetShardIterator(ctx context.Context, in *dynamodbstreams.GetShardIteratorInput,
	_ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error) {
	return through(ctx, c, "GetShardIterator", in, func(ctx context.Context, in *dynamodbstreams.GetShardIteratorInput,
		_ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error) {
		out, err := c.crew.Sim.GetShardIterator(ctx, in)
		if err == nil {
			c.crew.shards[*out.ShardIterator] = *in.ShardId
		}
		return out, err
	})
}

// GetRecords finds nothing on an iterator whose records are late.
func (c *client) GetRecords(ctx context.Context, in *dynamodbstreams.GetRecordsInput,
	_ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error) {
	return through(ctx, c, "GetRecords", in, func(ctx context.Context, in *dynamodbstreams.GetRecordsInput,
		_ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error) {
		if c.worker.verify == nil && c.crew.isLate(*in.ShardIterator) { // how late a record may come who verifies cannot know
			return &dynamodbstreams.GetRecordsOutput{NextShardIterator: in.ShardIterator}, nil
		}
		out, err := c.crew.Sim.GetRecords(ctx, in)
		if err == nil {
			c.crew.cameFrom(*in.ShardIterator, out)
		}
		return out, err
	})
}

// page is how many items a page of a scan has, as if items were large.
func (c *Crew) page(asked *int32) *int32 {
	if most := c.World.PageMax; most > 0 && (asked == nil || *asked > most) {
		return aws.Int32(most)
	}
	return asked
}

// limit is how many items a page may have.
func (c *Crew) limit(asked *int32) *int32 {
	if !c.partial {
		return asked
	}
	return aws.Int32(1)
}
