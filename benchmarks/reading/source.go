package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/smithy-go/logging"
	"golang.org/x/sync/errgroup"

	"github.com/dynamill/dynamill/internal/pace"
)

const (
	partitionKey = "pk"
	sortKey      = "sk"

	batchMax     = 25 // items in a BatchWriteItem
	writers      = 8
	attemptsMax  = 20
	retryWait    = 100 * time.Millisecond
	childrenOf   = 20 // items in one collection
	createMax    = time.Minute
	cleanupMax   = 30 * time.Second
	regionIfNone = "us-east-1"
)

// source is a table whose stream is read.
type source struct {
	endpoint, region string
	table, streamARN string
	records          int
	tables           *dynamodb.Client
	streams          *dynamodbstreams.Client
	sidetables       int
}

// newSource makes an empty table with a stream of both images.
func newSource(ctx context.Context, endpoint string, records int) (*source, error) {
	cfg, err := config.LoadDefaultConfig(ctx, config.WithBaseEndpoint(endpoint), config.WithLogger(logging.Nop{}))
	if err != nil {
		return nil, fmt.Errorf("configuring the AWS SDK: %w", err)
	}
	if cfg.Region == "" {
		cfg.Region = regionIfNone
	}
	s := &source{
		endpoint: endpoint, region: cfg.Region, records: records,
		table:   fmt.Sprintf("reading-%d", time.Now().UnixNano()),
		tables:  dynamodb.NewFromConfig(cfg),
		streams: dynamodbstreams.NewFromConfig(cfg),
	}
	created, err := s.tables.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:   &s.table,
		BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String(partitionKey), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String(sortKey), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String(partitionKey), KeyType: types.KeyTypeHash},
			{AttributeName: aws.String(sortKey), KeyType: types.KeyTypeRange},
		},
		StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
	})
	if err != nil {
		return nil, fmt.Errorf("creating table %s: %w", s.table, err)
	}
	s.streamARN = aws.ToString(created.TableDescription.LatestStreamArn)
	exists := dynamodb.NewTableExistsWaiter(s.tables)
	if err := exists.Wait(ctx, &dynamodb.DescribeTableInput{TableName: &s.table}, createMax); err != nil {
		return nil, fmt.Errorf("waiting for table %s: %w", s.table, err)
	}
	return s, nil
}

// sidetable returns a name for a table of leases or checkpoints.
func (s *source) sidetable() string {
	s.sidetables++
	return fmt.Sprintf("%s-progress-%d", s.table, s.sidetables)
}

// remove deletes a table if it is there.
func (s *source) remove(table string) {
	ctx, cancel := context.WithTimeout(context.Background(), cleanupMax)
	defer cancel()
	_, err := s.tables.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &table})
	var missing *types.ResourceNotFoundException
	if err != nil && !errors.As(err, &missing) {
		fmt.Fprintf(os.Stderr, "reading: table %s stays behind: %v\n", table, err)
	}
}

// fill writes the records: one for each of half as many new items, then one
// for the change of each, which carries both images.
func (s *source) fill(ctx context.Context) error {
	items := (s.records + 1) / 2
	if err := s.write(ctx, items, "open"); err != nil {
		return err
	}
	return s.write(ctx, s.records-items, "shipped")
}

func (s *source) write(ctx context.Context, items int, status string) error {
	group, writing := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for from := 0; from < items && writing.Err() == nil; from += batchMax {
		group.Go(func() error {
			var batch []types.WriteRequest
			for i := from; i < min(from+batchMax, items); i++ {
				batch = append(batch, types.WriteRequest{PutRequest: &types.PutRequest{Item: order(i, status)}})
			}
			return s.put(writing, batch)
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("writing to table %s: %w", s.table, err)
	}
	return ctx.Err()
}

// put writes a batch, and again what the table did not take.
func (s *source) put(ctx context.Context, batch []types.WriteRequest) error {
	for range attemptsMax {
		out, err := s.tables.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{
			RequestItems: map[string][]types.WriteRequest{s.table: batch},
		})
		if err != nil {
			return err
		}
		if batch = out.UnprocessedItems[s.table]; len(batch) == 0 {
			return nil
		}
		if pace.Sleep(ctx, retryWait) != nil {
			return ctx.Err()
		}
	}
	return fmt.Errorf("%d items were refused %d times", len(batch), attemptsMax)
}

// order is an item as a single-table design holds them: about half a KB.
func order(i int, status string) map[string]types.AttributeValue {
	text := func(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
	number := func(v int) types.AttributeValue { return &types.AttributeValueMemberN{Value: strconv.Itoa(v)} }
	customer, id := fmt.Sprintf("CUSTOMER#%06d", i/childrenOf), fmt.Sprintf("ORDER#%08d", i)
	return map[string]types.AttributeValue{
		partitionKey: text(customer), sortKey: text(id),
		"type": text("order"), "id": text(id), "status": text(status),
		"amount": number(i%9973 + 100), "quantity": number(i%7 + 1),
		"createdAt": text("2026-01-31T12:00:00Z"),
		"paid":      &types.AttributeValueMemberBOOL{Value: i%3 == 0},
		"tags":      &types.AttributeValueMemberSS{Value: []string{"gift", "express"}},
		"address": &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{
			"street": text("14 Mill Lane"), "city": text("Grindleford"), "code": text("S32 2HE"),
		}},
		"note": text(strings.Repeat("as delivered before; ", 6)),
	}
}
