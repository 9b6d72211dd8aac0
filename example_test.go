package dynamill_test

import (
	"context"
	"fmt"
	"time"

	"github.com/dynamill/dynamill"
	"github.com/dynamill/dynamill/dynamilltest"
	"github.com/dynamill/dynamill/rules"
)

// A process follows a table until it is told to stop, and says how far behind it is.
func ExampleFollow() {
	cfg, err := dynamilltest.New("app", "pk", "sk") // elsewhere: config.LoadDefaultConfig(ctx)
	if err != nil {
		panic(err)
	}
	set, err := rules.Load("dynamill.yaml", []byte(ruleFile)) // often a file that is embedded in the program
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background()) // elsewhere: signal.NotifyContext
	defer stop()
	var running *dynamill.Running
	err = dynamill.Follow(ctx, dynamill.Config{
		AWS: cfg, Table: "app", Rules: set,
		Started: func(r *dynamill.Running) { // before the first record
			running = r
			time.AfterFunc(time.Second, stop)
		},
	})
	fmt.Println("error:", err)
	fmt.Println("lag:", running.Status().Stream.Lag)
	// Output:
	// error: <nil>
	// lag: 0s
}

// A Lambda function of one's own passes the handler to lambda.Start of aws-lambda-go.
func ExampleNewHandler() {
	ctx := context.Background()
	cfg, err := dynamilltest.New("app", "pk", "sk") // on Lambda: config.LoadDefaultConfig(ctx)
	if err != nil {
		panic(err)
	}
	set, err := rules.Load("dynamill.yaml", []byte(ruleFile))
	if err != nil {
		panic(err)
	}
	handler, err := dynamill.NewHandler(ctx, dynamill.HandlerConfig{AWS: cfg, Table: "app", Rules: set})
	if err != nil {
		panic(err)
	}
	answer, err := handler.Invoke(ctx, []byte(`{"Records":[{"eventSource":"aws:dynamodb","eventName":"INSERT",
		"eventSourceARN":"arn:aws:dynamodb:us-east-1:000000000000:table/app/stream/2026-01-01T00:00:00.000","dynamodb":{"SequenceNumber":"100",
		"Keys":{"pk":{"S":"GROUP#g"},"sk":{"S":"USER#u"}},"NewImage":{"pk":{"S":"GROUP#g"},"sk":{"S":"USER#u"}}}}]}`))
	fmt.Println(string(answer), err)
	// Output: {"batchItemFailures":[]} <nil>
}
