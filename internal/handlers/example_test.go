package handlers_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/handlers"
)

// printer stands for the engine, which is Processor and Rederiver in one.
type printer struct{}

func (printer) Process(_ context.Context, records []change.Record) (int, error) {
	for _, r := range records {
		fmt.Println(r.Key, "is now called", r.New.Lookup("name").Text())
	}
	return len(records), nil
}

func (printer) RederiveRecords(_ context.Context, records []change.Record) error {
	for _, r := range records {
		fmt.Println("rederived:", r.Key)
	}
	return nil
}

// In a Lambda function the last line is lambda.Start(handler), of
// github.com/aws/aws-lambda-go/lambda.
func ExampleNew() {
	handler := handlers.New(handlers.Config{
		Processor:    printer{},
		Rederiver:    printer{},
		PartitionKey: "pk",
		SortKey:      "sk",
		Logger:       slog.New(slog.DiscardHandler),
		PieceFirst:   100,
	})
	answer, err := handler.Invoke(context.Background(), []byte(`{"Records": [{
		"eventName": "INSERT", "eventSource": "aws:dynamodb",
		"eventSourceARN": "arn:aws:dynamodb:eu-west-1:123456789012:table/app/stream/2026-01-01T00:00:00.000",
		"dynamodb": {
			"Keys": {"pk": {"S": "USER#1"}, "sk": {"S": "PROFILE"}},
			"NewImage": {"pk": {"S": "USER#1"}, "sk": {"S": "PROFILE"}, "name": {"S": "Ann"}},
			"SequenceNumber": "4421584500000000017450439091"
		}
	}]}`))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(answer))
	// Output:
	// USER#1/PROFILE is now called Ann
	// {"batchItemFailures":[]}
}
