package conformance

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// testIndexKeys holds writes to what a global secondary index asks of its key attributes.
func (s *suite) testIndexKeys(t *testing.T) {
	name := s.texts + "-indexed"
	in := simpleTable(name)
	in.AttributeDefinitions = append(in.AttributeDefinitions,
		types.AttributeDefinition{AttributeName: aws.String("group"), AttributeType: types.ScalarAttributeTypeS},
		types.AttributeDefinition{AttributeName: aws.String("rank"), AttributeType: types.ScalarAttributeTypeN},
		types.AttributeDefinition{AttributeName: aws.String("name"), AttributeType: types.ScalarAttributeTypeS})
	for index, sort := range map[string]string{"by-rank": "rank", "by-name": "name"} {
		in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
			IndexName: &index, Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
			KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("group"), KeyType: types.KeyTypeHash},
				{AttributeName: &sort, KeyType: types.KeyTypeRange}},
		})
	}
	_, err := s.Tables.CreateTable(t.Context(), in)
	wantNoError(t, err)
	defer func() { _, _ = s.Tables.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: &name}) }()

	for _, c := range []struct {
		name       string
		attributes item
		refused    bool
	}{
		{"both", item{"group": str("g"), "rank": num("1")}, false},
		{"neither", item{}, false},
		{"one", item{"group": str("g")}, false},
		{"the other", item{"rank": num("1")}, false},
		{"partition key of another type", item{"group": num("1")}, true},
		{"sort key of another type", item{"rank": str("1")}, true},
		{"NULL", item{"group": null()}, true},
		{"empty", item{"name": str("")}, true},
		{"2048 bytes in the partition key", item{"group": str(strings.Repeat("x", 2048)), "rank": num("1")}, false},
		{"2049 bytes in the partition key", item{"group": str(strings.Repeat("x", 2049)), "rank": num("1")}, true},
		{"1024 bytes in the sort key", item{"group": str("g"), "name": str(strings.Repeat("x", 1024))}, false},
		{"1025 bytes in the sort key", item{"group": str("g"), "name": str(strings.Repeat("x", 1025))}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			pk := item{"pk": str(partition(t))}
			put := &dynamodb.PutItemInput{TableName: &name, Item: item{"pk": pk["pk"], "x": num("1")}}
			_, err := s.Tables.PutItem(t.Context(), put)
			wantNoError(t, err)
			s.wantIndexed(t, name, pk, c.attributes, c.refused)
		})
	}
}

// wantIndexed writes attributes on an item in each way that there is. If they are refused, the item stays as it was.
func (s *suite) wantIndexed(t *testing.T, name string, pk, attributes item, refused bool) {
	t.Helper()
	judge := func(err error, reasons ...string) {
		t.Helper()
		switch {
		case !refused:
			wantNoError(t, err)
		case len(reasons) > 0 && isType[*types.TransactionCanceledException](err):
			wantReasons(t, err, reasons...)
		default:
			wantInvalid(t, err)
		}
	}
	update := &dynamodb.UpdateItemInput{TableName: &name, Key: pk, UpdateExpression: aws.String("SET x = :x"),
		ExpressionAttributeValues: item{":x": num("1")}, ExpressionAttributeNames: map[string]string{}}
	statement := types.BatchStatementRequest{Parameters: []types.AttributeValue{num("1")}}
	clauses := "SET x = ?"
	whole := item{"pk": pk["pk"], "x": num("1")}
	for attribute, v := range attributes {
		whole[attribute] = v
		update.UpdateExpression = aws.String(*update.UpdateExpression + ", #" + attribute + " = :" + attribute)
		update.ExpressionAttributeNames["#"+attribute] = attribute
		update.ExpressionAttributeValues[":"+attribute] = v
		clauses += ` SET "` + attribute + `" = ?`
		statement.Parameters = append(statement.Parameters, v)
	}
	if len(attributes) == 0 {
		update.ExpressionAttributeNames = nil
	}
	statement.Statement = aws.String(`UPDATE "` + name + `" ` + clauses + ` WHERE "pk" = ?`)
	statement.Parameters = append(statement.Parameters, pk["pk"])

	_, err := s.Tables.UpdateItem(t.Context(), update)
	judge(err)
	_, err = s.Tables.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &name, Item: whole})
	judge(err)
	_, err = s.Tables.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{
		Update: &types.Update{TableName: &name, Key: pk, UpdateExpression: update.UpdateExpression,
			ExpressionAttributeNames: update.ExpressionAttributeNames, ExpressionAttributeValues: update.ExpressionAttributeValues}}}})
	judge(err, "ValidationError")
	want := types.BatchStatementErrorCodeEnum("")
	if refused {
		want = types.BatchStatementErrorCodeEnumValidationError
	}
	wantStatement(t, s.execute(t, statement)[0], want)

	out, err := s.Tables.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &name, Key: pk, ConsistentRead: aws.Bool(true)})
	wantNoError(t, err)
	if refused {
		whole = item{"pk": pk["pk"], "x": num("1")}
	}
	wantItem(t, out.Item, whole)
}
