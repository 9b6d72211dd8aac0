// Package dynamilltest is a DynamoDB in memory, for tests of programs that use dynamill and of their
// rules. It is never for production: it holds no data beyond the process, refuses queries and scans
// of indexes, and has no throughput limits. It imports the simulated DynamoDB, internal/sim/dynamosim.
package dynamilltest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"

	"github.com/dynamill/dynamill/internal/sim/dynamosim"
)

// New makes a DynamoDB with one empty table whose stream is on with both images. The table's keys are
// strings; sortKey is "" for a table without one. Every client of DynamoDB and of its streams
// that is made of the returned configuration reaches it, and no call leaves the process. More tables
// come by the client's CreateTable. It is usable inside a bubble of testing/synctest.
func New(table, partitionKey, sortKey string) (aws.Config, error) {
	sim := dynamosim.New(dynamosim.Options{})
	in := &dynamodb.CreateTableInput{
		TableName: &table, BillingMode: types.BillingModePayPerRequest,
		StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
	}
	addKey(in, partitionKey, types.KeyTypeHash)
	if sortKey != "" {
		addKey(in, sortKey, types.KeyTypeRange)
	}
	if _, err := sim.CreateTable(context.Background(), in); err != nil {
		return aws.Config{}, fmt.Errorf("creating table %q in memory: %w", table, err)
	}
	return aws.Config{Region: "us-east-1", APIOptions: []func(*middleware.Stack) error{func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("dynamilltest.Memory",
			func(ctx context.Context, in middleware.InitializeInput, _ middleware.InitializeHandler) (
				out middleware.InitializeOutput, data middleware.Metadata, err error,
			) {
				out.Result, err = call(ctx, sim, in.Parameters)
				return out, data, err
			}), middleware.After) // the SDK has checked the input by then
	}}}, nil
}

func addKey(in *dynamodb.CreateTableInput, name string, role types.KeyType) {
	in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: &name, KeyType: role})
	attribute := types.AttributeDefinition{AttributeName: &name, AttributeType: types.ScalarAttributeTypeS}
	in.AttributeDefinitions = append(in.AttributeDefinitions, attribute)
}

// call has the simulator answer an input of the SDK: the operation is what comes before "Input" in its type's name.
func call(ctx context.Context, sim *dynamosim.Sim, input any) (any, error) {
	operation := strings.TrimSuffix(reflect.Indirect(reflect.ValueOf(input)).Type().Name(), "Input")
	method := reflect.ValueOf(sim).MethodByName(operation)
	if !method.IsValid() {
		return nil, &smithy.GenericAPIError{Code: "UnknownOperationException", Message: "the DynamoDB in memory has no " + operation}
	}
	answers := method.Call([]reflect.Value{reflect.ValueOf(ctx), reflect.ValueOf(input)})
	if err, failed := answers[1].Interface().(error); failed {
		var wrapped *smithy.OperationError // the client wraps it again
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return nil, err
	}
	return answers[0].Interface(), nil
}
