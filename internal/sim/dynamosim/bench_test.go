package dynamosim_test

import (
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/sim/dynamosim"
)

func newBench(b *testing.B) *dynamosim.Sim {
	sim := dynamosim.New(dynamosim.Options{})
	_, err := sim.CreateTable(b.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String(table), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String("sk"), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash},
			{AttributeName: aws.String("sk"), KeyType: types.KeyTypeRange}},
		StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
	})
	if err != nil {
		b.Fatal(err)
	}
	return sim
}

// A collection of many items must not make its writes slow.
func BenchmarkPutIntoOneCollection(b *testing.B) {
	sim := newBench(b)
	for i := range b.N {
		if _, err := sim.PutItem(b.Context(), &dynamodb.PutItemInput{TableName: aws.String(table),
			Item: item{"pk": str("a"), "sk": str(fmt.Sprint(i * 7919 % 1_000_003)), "n": num(i)}}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPutIntoManyCollections(b *testing.B) {
	sim := newBench(b)
	for i := range b.N {
		if _, err := sim.PutItem(b.Context(), &dynamodb.PutItemInput{TableName: aws.String(table),
			Item: item{"pk": str(fmt.Sprint(i)), "sk": str("a"), "n": num(i)}}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkConditionalUpdate(b *testing.B) {
	sim := newBench(b)
	for range b.N {
		in := addOne(key("a", "a"))
		in.ConditionExpression = aws.String("attribute_not_exists(pk) OR n < :max")
		in.ExpressionAttributeValues[":max"] = num(b.N + 1)
		if _, err := sim.UpdateItem(b.Context(), in); err != nil {
			b.Fatal(err)
		}
	}
}
