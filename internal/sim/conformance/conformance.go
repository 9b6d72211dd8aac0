// Package conformance is one suite of tests that holds every DynamoDB to what
// AWS documents: the simulated one always, and any endpoint given. Where an
// endpoint is known to differ, the difference is named as a Deviation and what
// it does instead is asserted, so that the list stays true.
//
// It imports the AWS SDK and test packages only.
package conformance

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/smithy-go"
)

// Tables is the part of the SDK's dynamodb client that the suite runs on.
type Tables interface {
	CreateTable(context.Context, *dynamodb.CreateTableInput, ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error)
	DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
	UpdateTable(context.Context, *dynamodb.UpdateTableInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateTableOutput, error)
	DeleteTable(context.Context, *dynamodb.DeleteTableInput, ...func(*dynamodb.Options)) (*dynamodb.DeleteTableOutput, error)
	ListTables(context.Context, *dynamodb.ListTablesInput, ...func(*dynamodb.Options)) (*dynamodb.ListTablesOutput, error)
	UpdateTimeToLive(context.Context, *dynamodb.UpdateTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateTimeToLiveOutput, error)
	DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput,
		error)
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	DeleteItem(context.Context, *dynamodb.DeleteItemInput, ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error)
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
	Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
	BatchGetItem(context.Context, *dynamodb.BatchGetItemInput, ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error)
	BatchWriteItem(context.Context, *dynamodb.BatchWriteItemInput, ...func(*dynamodb.Options)) (*dynamodb.BatchWriteItemOutput, error)
	BatchExecuteStatement(context.Context, *dynamodb.BatchExecuteStatementInput,
		...func(*dynamodb.Options)) (*dynamodb.BatchExecuteStatementOutput, error)
	TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput,
		error)
}

// Streams is the SDK's dynamodbstreams client.
type Streams interface {
	ListStreams(context.Context, *dynamodbstreams.ListStreamsInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.ListStreamsOutput,
		error)
	DescribeStream(context.Context, *dynamodbstreams.DescribeStreamInput,
		...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error)
	GetShardIterator(context.Context, *dynamodbstreams.GetShardIteratorInput,
		...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error)
	GetRecords(context.Context, *dynamodbstreams.GetRecordsInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error)
}

// Endpoint is a DynamoDB to test.
type Endpoint struct {
	Tables   Tables
	Streams  Streams
	Deviates map[Deviation]bool
}

var (
	_ Tables  = (*dynamodb.Client)(nil)
	_ Streams = (*dynamodbstreams.Client)(nil)
)

// suite is one run: an endpoint with two tables made for it.
type suite struct {
	Endpoint
	texts   string // keys pk (S) and sk (S), with a stream of both images
	numbers string // keys pk (S) and sk (N)
	arn     string // of the stream of texts
}

var runs atomic.Int64

// Run runs the suite against the endpoint that open returns. Tables are made
// under names of their own and deleted at the end.
func Run(t *testing.T, open func(t *testing.T) Endpoint) {
	s := &suite{Endpoint: open(t)}
	prefix := fmt.Sprintf("conformance-%d-%d-", time.Now().UnixNano(), runs.Add(1))
	s.texts, s.numbers = prefix+"texts", prefix+"numbers"
	s.arn = s.create(t, s.texts, types.ScalarAttributeTypeS, true)
	s.create(t, s.numbers, types.ScalarAttributeTypeN, false)
	for _, part := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"tables", s.testTables},
		{"table errors", s.testTableErrors},
		{"time to live", s.testTimeToLive},
		{"simple keys", s.testSimpleKeys},
		{"index keys", s.testIndexKeys},
		{"items", s.testItems},
		{"return values", s.testReturnValues},
		{"limits", s.testLimits},
		{"edges", s.testEdges},
		{"conditions", s.testConditions},
		{"updates", s.testUpdates},
		{"projections", s.testProjections},
		{"queries", s.testQueries},
		{"pages", s.testPages},
		{"filters", s.testFilters},
		{"order and size", s.testOrderAndSize},
		{"scans", s.testScans},
		{"batches", s.testBatches},
		{"statements", s.testStatements},
		{"transactions", s.testTransactions},
		{"transaction validation", s.testTransactionValidation},
		{"transaction limits", s.testTransactionLimits},
		{"transaction tokens", s.testTransactionTokens},
		{"capacity", s.testCapacity},
		{"read capacity", s.testReadCapacity},
		{"batch capacity", s.testBatchCapacity},
		{"streams", s.testStreams},
	} {
		t.Run(part.name, part.run)
	}
}

func (s *suite) create(t *testing.T, name string, sort types.ScalarAttributeType, streaming bool) (streamARN string) {
	t.Helper()
	in := &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String("sk"), AttributeType: sort},
		},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash},
			{AttributeName: aws.String("sk"), KeyType: types.KeyTypeRange},
		},
	}
	if streaming {
		in.StreamSpecification = &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages}
	}
	if _, err := s.Tables.CreateTable(t.Context(), in); err != nil {
		t.Fatalf("creating table %s: %v", name, err)
	}
	t.Cleanup(func() {
		_, err := s.Tables.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &name})
		if err != nil && !isType[*types.ResourceNotFoundException](err) {
			t.Errorf("deleting table %s: %v", name, err)
		}
	})
	waiter := dynamodb.NewTableExistsWaiter(s.Tables, func(o *dynamodb.TableExistsWaiterOptions) { o.MinDelay = 50 * time.Millisecond })
	out, err := waiter.WaitForOutput(t.Context(), &dynamodb.DescribeTableInput{TableName: &name}, time.Minute)
	if err != nil {
		t.Fatalf("waiting for table %s: %v", name, err)
	}
	return aws.ToString(out.Table.LatestStreamArn)
}

func isType[E error](err error) bool {
	var target E
	return errors.As(err, &target)
}

// asType is errors.As, named for how tests read.
func asType[E error](err error, target *E) bool { return errors.As(err, target) }

// wantCode fails the test unless err is an API error of this code.
func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	var api smithy.APIError
	if !errors.As(err, &api) {
		t.Fatalf("got error %v, want %s", err, code)
	}
	if api.ErrorCode() != code {
		t.Fatalf("got error %s: %s, want %s", api.ErrorCode(), api.ErrorMessage(), code)
	}
}

func wantInvalid(t *testing.T, err error) {
	t.Helper()
	wantCode(t, err, "ValidationException")
}

func wantNoError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("got error %v, want none", err)
	}
}

// records reads the whole stream and returns the records of one partition key.
func (s *suite) records(t *testing.T, partition string) []streamtypes.Record {
	t.Helper()
	var found []streamtypes.Record
	for _, sh := range s.shards(t) {
		it := s.iterator(t, *sh.ShardId, streamtypes.ShardIteratorTypeTrimHorizon, nil)
		for it != nil {
			out, err := s.Streams.GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: it})
			wantNoError(t, err)
			for _, r := range out.Records {
				if pk, ok := r.Dynamodb.Keys["pk"].(*streamtypes.AttributeValueMemberS); ok && pk.Value == partition {
					found = append(found, r)
				}
			}
			if it = out.NextShardIterator; len(out.Records) == 0 {
				break
			}
		}
	}
	return found
}

func (s *suite) shards(t *testing.T) []streamtypes.Shard {
	t.Helper()
	var shards []streamtypes.Shard
	in := &dynamodbstreams.DescribeStreamInput{StreamArn: &s.arn}
	for {
		out, err := s.Streams.DescribeStream(t.Context(), in)
		wantNoError(t, err)
		shards = append(shards, out.StreamDescription.Shards...)
		if in.ExclusiveStartShardId = out.StreamDescription.LastEvaluatedShardId; in.ExclusiveStartShardId == nil {
			return shards
		}
	}
}

func (s *suite) iterator(t *testing.T, shard string, kind streamtypes.ShardIteratorType, sequence *string) *string {
	t.Helper()
	out, err := s.Streams.GetShardIterator(t.Context(), &dynamodbstreams.GetShardIteratorInput{
		StreamArn: &s.arn, ShardId: &shard, ShardIteratorType: kind, SequenceNumber: sequence,
	})
	wantNoError(t, err)
	return out.ShardIterator
}
