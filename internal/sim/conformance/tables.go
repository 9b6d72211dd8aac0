package conformance

import (
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func (s *suite) testTables(t *testing.T) {
	t.Run("a table is described with its keys and its stream", func(t *testing.T) {
		out, err := s.Tables.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &s.texts})
		wantNoError(t, err)
		d := out.Table
		if d.TableStatus != types.TableStatusActive || aws.ToString(d.TableName) != s.texts ||
			(aws.ToString(d.TableId) == "") != s.Deviates[NoTableID] || aws.ToString(d.TableArn) == "" {
			t.Errorf("got %s %s %s %s", d.TableStatus, aws.ToString(d.TableName), aws.ToString(d.TableId), aws.ToString(d.TableArn))
		}
		if len(d.KeySchema) != 2 || d.KeySchema[0].KeyType != types.KeyTypeHash || aws.ToString(d.KeySchema[1].AttributeName) != "sk" {
			t.Errorf("got key schema %v", d.KeySchema)
		}
		if d.StreamSpecification == nil || d.StreamSpecification.StreamViewType != types.StreamViewTypeNewAndOldImages ||
			aws.ToString(d.LatestStreamLabel) == "" {
			t.Errorf("got stream %v with label %q", d.StreamSpecification, aws.ToString(d.LatestStreamLabel))
		}
	})
	t.Run("a table is listed", func(t *testing.T) {
		pages := dynamodb.NewListTablesPaginator(s.Tables, &dynamodb.ListTablesInput{Limit: aws.Int32(1)})
		var names []string
		for pages.HasMorePages() {
			out, err := pages.NextPage(t.Context())
			wantNoError(t, err)
			names = append(names, out.TableNames...)
		}
		if !slices.Contains(names, s.texts) || !slices.Contains(names, s.numbers) {
			t.Errorf("got %v, want %s and %s among them", names, s.texts, s.numbers)
		}
	})
}

func (s *suite) testTableErrors(t *testing.T) {
	t.Run("a second table of the same name is refused", func(t *testing.T) {
		_, err := s.Tables.CreateTable(t.Context(), simpleTable(s.texts))
		wantCode(t, err, "ResourceInUseException")
	})
	t.Run("key attributes have to be defined, and no others", func(t *testing.T) {
		in := simpleTable(s.texts + "-bad")
		in.AttributeDefinitions[0].AttributeName = aws.String("other")
		_, err := s.Tables.CreateTable(t.Context(), in)
		wantInvalid(t, err)
		in = simpleTable(s.texts + "-bad")
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: aws.String("more"),
			AttributeType: types.ScalarAttributeTypeN})
		_, err = s.Tables.CreateTable(t.Context(), in)
		wantInvalid(t, err)
	})
	t.Run("a table that does not exist is not found", func(t *testing.T) {
		none := s.texts + "-none"
		_, err := s.Tables.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &none})
		wantCode(t, err, "ResourceNotFoundException")
		_, err = s.Tables.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &none, Key: key("a", "b")})
		wantCode(t, err, "ResourceNotFoundException")
		_, err = s.Tables.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &none, Item: key("a", "b")})
		wantCode(t, err, "ResourceNotFoundException")
		_, err = s.Tables.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: &none})
		wantCode(t, err, "ResourceNotFoundException")
	})
}

func (s *suite) testTimeToLive(t *testing.T) {
	t.Run("time to live is turned on once", func(t *testing.T) {
		out, err := s.Tables.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: &s.numbers})
		wantNoError(t, err)
		if out.TimeToLiveDescription.TimeToLiveStatus != types.TimeToLiveStatusDisabled {
			t.Fatalf("got %v at first", out.TimeToLiveDescription)
		}
		on := &dynamodb.UpdateTimeToLiveInput{TableName: &s.numbers,
			TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("ttl"), Enabled: aws.Bool(true)}}
		_, err = s.Tables.UpdateTimeToLive(t.Context(), on)
		wantNoError(t, err)
		out, err = s.Tables.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: &s.numbers})
		wantNoError(t, err)
		if status := out.TimeToLiveDescription.TimeToLiveStatus; status != types.TimeToLiveStatusEnabled &&
			status != types.TimeToLiveStatusEnabling {
			t.Fatalf("got %v after", out.TimeToLiveDescription)
		}
		_, err = s.Tables.UpdateTimeToLive(t.Context(), on)
		wantInvalid(t, err)
	})
}

func (s *suite) testSimpleKeys(t *testing.T) {
	t.Run("a table may have a partition key alone", func(t *testing.T) {
		name := s.texts + "-simple"
		_, err := s.Tables.CreateTable(t.Context(), simpleTable(name))
		wantNoError(t, err)
		defer func() { _, _ = s.Tables.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: &name}) }()
		it := item{"pk": str("a"), "sk": num("1")}
		_, err = s.Tables.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &name, Item: it})
		wantNoError(t, err)
		out, err := s.Tables.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &name, Key: item{"pk": str("a")},
			ConsistentRead: aws.Bool(true)})
		wantNoError(t, err)
		wantItem(t, out.Item, it)
		_, err = s.Tables.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &name, Key: it})
		wantInvalid(t, err)
	})
}

func simpleTable(name string) *dynamodb.CreateTableInput {
	return &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
	}
}
