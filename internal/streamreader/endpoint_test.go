package streamreader

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/dynamill/dynamill/internal/sim/emulator"
)

// TestEndpoint follows real streams, with the SDK's clients.
func TestEndpoint(t *testing.T) {
	emulator.Each(t, followEndpoint)
}

func followEndpoint(t *testing.T, server emulator.Endpoint) {
	cfg := server.Config(t)
	db := dynamodb.NewFromConfig(cfg)
	table := fmt.Sprintf("streamreader-%d", time.Now().UnixNano())
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	created, err := db.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:            &table,
		BillingMode:          ddb.BillingModePayPerRequest,
		AttributeDefinitions: []ddb.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: ddb.ScalarAttributeTypeS}},
		KeySchema:            []ddb.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: ddb.KeyTypeHash}},
		StreamSpecification:  &ddb.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: ddb.StreamViewTypeNewAndOldImages},
	})
	if err != nil {
		t.Fatal(err)
	}
	leases := table + "-dynamill-leases"
	defer func() {
		for _, name := range []string{table, leases} {
			if _, err := db.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &name}); err != nil {
				t.Error(err)
			}
		}
	}()
	c := &collector{}
	write := func(round int) {
		for i := range 60 {
			_, err := db.PutItem(ctx, &dynamodb.PutItemInput{TableName: &table, Item: map[string]ddb.AttributeValue{
				"pk": text(fmt.Sprintf("item%d", i%3)), "n": number(int64(100*round + i)),
			}})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	reader := func() *Reader {
		return newTestReader(t, dynamodbstreams.NewFromConfig(cfg), NewLeaseTable(db, leases), c, func(cfg *Config) {
			cfg.StreamARN, cfg.PartitionKey = *created.TableDescription.LatestStreamArn, "pk"
			// Time is real here: on a machine under load a worker may be late for a renewal.
			cfg.PollInterval, cfg.LeaseTerm = 100*time.Millisecond, 5*time.Second
		})
	}
	for round := 1; round <= 2; round++ { // the second reader starts behind the first one's checkpoint
		write(round)
		if err := reader().Drain(ctx); err != nil {
			t.Fatal(err)
		}
		wantItems(t, c, map[string]int{"item0": 20 * round, "item1": 20 * round, "item2": 20 * round})
	}
	// A third one follows; beside it a fourth waits until the third has read
	// everything, and a fifth when the third has left.
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	third := reader()
	go func() { ended <- third.Run(running) }()
	for third.Stats().Open == 0 && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	for round := 3; round <= 4; round++ {
		write(round)
		if err := reader().Drain(ctx); err != nil {
			t.Fatal(err)
		}
		wantItems(t, c, map[string]int{"item0": 20 * round, "item1": 20 * round, "item2": 20 * round})
		stop()
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
