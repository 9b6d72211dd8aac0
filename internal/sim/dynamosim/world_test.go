package dynamosim_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/smithy-go"

	"github.com/dynamill/dynamill/internal/sim/dynamosim"
)

const table = "things"

type item = map[string]types.AttributeValue

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
func num(n any) types.AttributeValue    { return &types.AttributeValueMemberN{Value: fmt.Sprint(n)} }

func key(pk, sk string) item { return item{"pk": str(pk), "sk": str(sk)} }

// world is a Sim with one table, its stream, and a clock that stands still.
type world struct {
	*testing.T
	*dynamosim.Sim
	now time.Time
	arn string
}

func newWorld(t *testing.T, options dynamosim.Options) *world {
	t.Helper()
	w := &world{T: t, now: time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)}
	options.Now = func() time.Time { return w.now }
	w.Sim = dynamosim.New(options)
	out, err := w.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String(table), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String("sk"), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash},
			{AttributeName: aws.String("sk"), KeyType: types.KeyTypeRange}},
		StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
	})
	w.must(err)
	w.arn = *out.TableDescription.LatestStreamArn
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) put(pk, sk string, n int) {
	w.Helper()
	_, err := w.PutItem(w.Context(), &dynamodb.PutItemInput{TableName: aws.String(table),
		Item: item{"pk": str(pk), "sk": str(sk), "n": num(n)}})
	w.must(err)
}

func (w *world) get(pk, sk string) item {
	w.Helper()
	out, err := w.GetItem(w.Context(), &dynamodb.GetItemInput{TableName: aws.String(table), Key: key(pk, sk)})
	w.must(err)
	return out.Item
}

func (w *world) shards() []streamtypes.Shard {
	w.Helper()
	out, err := w.DescribeStream(w.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: &w.arn})
	w.must(err)
	return out.StreamDescription.Shards
}

func (w *world) iterator(shard string, kind streamtypes.ShardIteratorType, sequence string) (*string, error) {
	in := &dynamodbstreams.GetShardIteratorInput{StreamArn: &w.arn, ShardId: &shard, ShardIteratorType: kind}
	if sequence != "" {
		in.SequenceNumber = &sequence
	}
	out, err := w.GetShardIterator(w.Context(), in)
	if err != nil {
		return nil, err
	}
	return out.ShardIterator, nil
}

// read reads a shard from its trim horizon to its end, or to where nothing more comes.
func (w *world) read(shard string) (records []streamtypes.Record, ended bool) {
	w.Helper()
	it, err := w.iterator(shard, streamtypes.ShardIteratorTypeTrimHorizon, "")
	w.must(err)
	for {
		out, err := w.GetRecords(w.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: it})
		w.must(err)
		records = append(records, out.Records...)
		if it = out.NextShardIterator; it == nil {
			return records, true
		}
		if len(out.Records) == 0 {
			return records, false
		}
	}
}

func isError[E error](err error) bool {
	var target E
	return errors.As(err, &target)
}

func isInvalid(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && api.ErrorCode() == "ValidationException"
}

// enableAnew disables the table's stream and enables it again, which makes a new one.
func (w *world) enableAnew() {
	w.Helper()
	for _, spec := range []*types.StreamSpecification{
		{StreamEnabled: aws.Bool(false)},
		{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
	} {
		out, err := w.UpdateTable(w.Context(), &dynamodb.UpdateTableInput{TableName: aws.String(table), StreamSpecification: spec})
		w.must(err)
		if *spec.StreamEnabled {
			w.arn = *out.TableDescription.LatestStreamArn
		}
	}
}
