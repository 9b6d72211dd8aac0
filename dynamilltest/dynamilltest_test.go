package dynamilltest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"

	"github.com/dynamill/dynamill/dynamilltest"
)

func ExampleNew() {
	cfg, err := dynamilltest.New("app", "pk", "sk")
	if err != nil {
		panic(err)
	}
	client := dynamodb.NewFromConfig(cfg)
	table, err := client.DescribeTable(context.Background(), &dynamodb.DescribeTableInput{TableName: aws.String("app")})
	if err != nil {
		panic(err)
	}
	fmt.Println(*table.Table.TableName, table.Table.StreamSpecification.StreamViewType)
	// Output: app NEW_AND_OLD_IMAGES
}

func TestClientsOfTheConfigShareOneTable(t *testing.T) {
	cfg, err := dynamilltest.New("app", "id", "")
	if err != nil {
		t.Fatal(err)
	}
	item := map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "a"}}
	if _, err := dynamodb.NewFromConfig(cfg).PutItem(t.Context(),
		&dynamodb.PutItemInput{TableName: aws.String("app"), Item: item}); err != nil {
		t.Fatal(err)
	}
	found, err := dynamodb.NewFromConfig(cfg).GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("app"), Key: item})
	if err != nil || len(found.Item) != 1 {
		t.Errorf("item %v, %v", found, err)
	}
	streams, err := dynamodbstreams.NewFromConfig(cfg).ListStreams(t.Context(),
		&dynamodbstreams.ListStreamsInput{TableName: aws.String("app")})
	if err != nil || len(streams.Streams) != 1 {
		t.Errorf("streams %v, %v", streams, err)
	}
}

func TestErrorsAreThoseOfTheSDK(t *testing.T) {
	cfg, err := dynamilltest.New("app", "id", "")
	if err != nil {
		t.Fatal(err)
	}
	client := dynamodb.NewFromConfig(cfg)
	_, err = client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("other")})
	var missing *types.ResourceNotFoundException
	if !errors.As(err, &missing) || strings.Count(err.Error(), "operation error") != 1 {
		t.Errorf("a missing table: %v", err)
	}
	var operation *smithy.OperationError
	if !errors.As(err, &operation) || operation.Operation() != "DescribeTable" {
		t.Errorf("the operation is not named: %v", err)
	}
	if _, err = client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{}); err == nil || !strings.Contains(err.Error(), "TableName") {
		t.Errorf("an input without a table: %v", err)
	}
	var unknown smithy.APIError
	_, err = s3.NewFromConfig(cfg).GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String("b"), Key: aws.String("k")})
	if !errors.As(err, &unknown) || unknown.ErrorCode() != "UnknownOperationException" {
		t.Errorf("an operation of another service: %v", err)
	}
	if _, err := dynamilltest.New("", "id", ""); err == nil {
		t.Error("a table without a name is made")
	}
}
