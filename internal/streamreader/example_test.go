package streamreader_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/sim/dynamosim"
	"github.com/dynamill/dynamill/internal/streamreader"
)

// printer is the smallest Processor: whatever it is given is done.
type printer struct{}

func (printer) Process(_ context.Context, records []change.Record) (int, error) {
	for _, r := range records {
		fmt.Println(r.Key, "is now called", r.New.Lookup("name").Text())
	}
	return len(records), nil
}

// A reader needs a client for the stream, one for the lease table, and a
// Processor. Here a simulated DynamoDB stands in for both clients; with AWS
// they are dynamodbstreams.NewFromConfig(cfg) and dynamodb.NewFromConfig(cfg).
func Example() {
	ctx := context.Background()
	db := dynamosim.New(dynamosim.Options{})
	table, err := db.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:            aws.String("app"),
		BillingMode:          ddb.BillingModePayPerRequest,
		AttributeDefinitions: []ddb.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: ddb.ScalarAttributeTypeS}},
		KeySchema:            []ddb.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: ddb.KeyTypeHash}},
		StreamSpecification:  &ddb.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: ddb.StreamViewTypeNewAndOldImages},
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range []string{"Ann", "Anne"} {
		_, err := db.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("app"), Item: map[string]ddb.AttributeValue{
			"pk":   &ddb.AttributeValueMemberS{Value: "USER#1"},
			"name": &ddb.AttributeValueMemberS{Value: name},
		}})
		if err != nil {
			log.Fatal(err)
		}
	}

	reader, err := streamreader.New(streamreader.Config{
		Streams:     db,
		StreamARN:   *table.TableDescription.LatestStreamArn,
		Checkpoints: streamreader.NewLeaseTable(db, "app-dynamill-leases"),
		Processor:   printer{},
		Logger:      slog.New(slog.DiscardHandler),
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := reader.Drain(ctx); err != nil { // Run follows the stream until ctx ends
		log.Fatal(err)
	}
	fmt.Println(reader.Stats().Records, "records")
	// Output:
	// USER#1 is now called Ann
	// USER#1 is now called Anne
	// 2 records
}
