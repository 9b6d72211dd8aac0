package conformance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const total = types.ReturnConsumedCapacityTotal

func wantUnits(t *testing.T, got *types.ConsumedCapacity, want float64) {
	t.Helper()
	if got == nil || aws.ToFloat64(got.CapacityUnits) != want {
		t.Fatalf("got %v, want %v units", unitsOf(got), want)
	}
}

func unitsOf(c *types.ConsumedCapacity) string {
	if c == nil {
		return "no capacity"
	}
	return fmt.Sprint(aws.ToFloat64(c.CapacityUnits))
}

// sized returns an item of so many bytes.
func sized(pk, sk string, bytes int) item {
	return with(pk, sk, item{"v": str(strings.Repeat("x", bytes-len(pk)-len(sk)-len("pkskv")))})
}

func (s *suite) putUnits(t *testing.T, it item) *types.ConsumedCapacity {
	t.Helper()
	out, err := s.Tables.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &s.texts, Item: it, ReturnConsumedCapacity: total})
	wantNoError(t, err)
	return out.ConsumedCapacity
}

func (s *suite) testCapacity(t *testing.T) {
	t.Run("a put costs by the larger of the items before and after", func(t *testing.T) {
		pk := partition(t)
		wantUnits(t, s.putUnits(t, sized(pk, "a", 1024)), 1)
		wantUnits(t, s.putUnits(t, sized(pk, "a", 1025)), 2)
		wantUnits(t, s.putUnits(t, sized(pk, "a", 3500)), 4)
		wantUnits(t, s.putUnits(t, sized(pk, "a", 100)), 4)
	})
	t.Run("an update costs by the whole item", func(t *testing.T) {
		pk := partition(t)
		s.putUnits(t, sized(pk, "a", 2500))
		out, err := s.Tables.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: &s.texts, Key: key(pk, "a"),
			UpdateExpression:          aws.String("SET n = :n"),
			ExpressionAttributeValues: item{":n": num("1")}, ReturnConsumedCapacity: total})
		wantNoError(t, err)
		wantUnits(t, out.ConsumedCapacity, 3)
	})
	t.Run("a delete costs by the item deleted, or one", func(t *testing.T) {
		pk := partition(t)
		s.putUnits(t, sized(pk, "a", 2500))
		for _, want := range []float64{3, 1} {
			out, err := s.Tables.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &s.texts, Key: key(pk, "a"),
				ReturnConsumedCapacity: total})
			wantNoError(t, err)
			wantUnits(t, out.ConsumedCapacity, want)
		}
	})
}

func (s *suite) testReadCapacity(t *testing.T) {
	t.Run("a read costs by 4 KB, half if eventual", func(t *testing.T) {
		pk := partition(t)
		s.putUnits(t, sized(pk, "a", 4096))
		s.putUnits(t, sized(pk, "b", 4097))
		for _, c := range []struct {
			sk         string
			consistent bool
			want       float64
		}{{"a", true, 1}, {"a", false, 0.5}, {"b", true, 2}, {"b", false, 1}, {"none", true, 1}, {"none", false, 0.5}} {
			out, err := s.Tables.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &s.texts, Key: key(pk, c.sk), ConsistentRead: &c.consistent,
				ProjectionExpression: aws.String("sk"), ReturnConsumedCapacity: total})
			wantNoError(t, err)
			wantUnits(t, out.ConsumedCapacity, c.want)
		}
	})
	t.Run("a query costs by the sum of what it reads", func(t *testing.T) {
		pk := partition(t)
		for i := range 10 {
			s.putUnits(t, sized(pk, fmt.Sprint(i), 1000))
		}
		for consistent, want := range map[bool]float64{true: 3, false: 1.5} {
			out, err := s.Tables.Query(t.Context(), &dynamodb.QueryInput{TableName: &s.texts, KeyConditionExpression: aws.String("pk = :p"),
				ConsistentRead:   &consistent,
				FilterExpression: aws.String("attribute_exists(nothing)"), ExpressionAttributeValues: item{":p": str(pk)},
				ReturnConsumedCapacity: total})
			wantNoError(t, err)
			wantUnits(t, out.ConsumedCapacity, want)
		}
	})
}

func (s *suite) testBatchCapacity(t *testing.T) {
	t.Run("a batch costs as its parts", func(t *testing.T) {
		pk := partition(t)
		out, err := s.Tables.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{ReturnConsumedCapacity: total,
			RequestItems: map[string][]types.WriteRequest{s.texts: {
				{PutRequest: &types.PutRequest{Item: sized(pk, "a", 1500)}}, {PutRequest: &types.PutRequest{Item: sized(pk, "b", 500)}},
			}}})
		wantNoError(t, err)
		wantUnits(t, &out.ConsumedCapacity[0], 3)
	})
	t.Run("a transaction costs twice", func(t *testing.T) {
		pk := partition(t)
		s.putUnits(t, sized(pk, "check", 1500))
		out, err := s.Tables.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{ReturnConsumedCapacity: total,
			TransactItems: []types.TransactWriteItem{
				s.putAction(sized(pk, "a", 1500), ""), s.updateAction(key(pk, "b"), "ADD n :v", item{":v": num("1")}),
				s.checkAction(key(pk, "check"), "attribute_exists(pk)"),
			}})
		wantNoError(t, err)
		want := 10.0
		if s.Deviates[TransactionsBilledBySum] {
			want = 6 // the three are just under 3 KB together
		}
		wantUnits(t, &out.ConsumedCapacity[0], want)
	})
	t.Run("numbers take a byte for two digits and one more", func(t *testing.T) {
		pk := partition(t)
		// 20 digits are 11 bytes; with the name n that is 12.
		it := sized(pk, "a", 1024-12)
		it["n"] = num("12345678901234567891")
		wantUnits(t, s.putUnits(t, it), 1)
		it = sized(pk, "b", 1024-11)
		it["n"] = num("12345678901234567891")
		wantUnits(t, s.putUnits(t, it), 2)
	})
}
