package conformance

import (
	"fmt"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// batchWrites puts the items 000, 001, ... of one partition key.
func batchWrites(pk string, n int) []types.WriteRequest {
	var requests []types.WriteRequest
	for i := range n {
		requests = append(requests, types.WriteRequest{PutRequest: &types.PutRequest{Item: with(pk, fmt.Sprintf("%03d", i),
			item{"i": num(fmt.Sprint(i))})}})
	}
	return requests
}

// batchKeys are the keys that batchWrites writes.
func batchKeys(pk string, n int) []map[string]types.AttributeValue {
	var keys []map[string]types.AttributeValue
	for i := range n {
		keys = append(keys, key(pk, fmt.Sprintf("%03d", i)))
	}
	return keys
}

func (s *suite) batchWrite(t *testing.T, requests []types.WriteRequest) error {
	t.Helper()
	out, err := s.Tables.BatchWriteItem(t.Context(),
		&dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{s.texts: requests}})
	if err == nil && len(out.UnprocessedItems) > 0 {
		t.Errorf("got unprocessed items %v", out.UnprocessedItems)
	}
	return err
}

func (s *suite) batchRead(t *testing.T, request types.KeysAndAttributes) ([]string, error) {
	t.Helper()
	request.ConsistentRead = aws.Bool(true)
	out, err := s.Tables.BatchGetItem(t.Context(),
		&dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{s.texts: request}})
	if err != nil {
		return nil, err
	}
	if len(out.UnprocessedKeys) > 0 {
		t.Errorf("got unprocessed keys %v", out.UnprocessedKeys)
	}
	got := sortKeys(out.Responses[s.texts])
	slices.Sort(got)
	return got, nil
}

func (s *suite) testBatches(t *testing.T) {
	pk := partition(t)
	t.Run("25 writes are done, and read back; missing items are left out", func(t *testing.T) {
		wantNoError(t, s.batchWrite(t, batchWrites(pk, 25)))
		got, err := s.batchRead(t, types.KeysAndAttributes{Keys: batchKeys(pk, 27)})
		wantNoError(t, err)
		want := []string{}
		for i := range 25 {
			want = append(want, fmt.Sprintf("%03d", i))
		}
		wantKeys(t, got, want)
	})
	t.Run("puts and deletes mix", func(t *testing.T) {
		requests := batchWrites(pk, 3)
		requests[1] = types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: key(pk, "001")}}
		wantNoError(t, s.batchWrite(t, requests))
		got, err := s.batchRead(t, types.KeysAndAttributes{Keys: batchKeys(pk, 3), ProjectionExpression: aws.String("sk")})
		wantNoError(t, err)
		wantKeys(t, got, []string{"000", "002"})
	})
	t.Run("26 writes are too many", func(t *testing.T) { wantInvalid(t, s.batchWrite(t, batchWrites(pk, 26))) })
	t.Run("one key twice is refused", func(t *testing.T) {
		wantInvalid(t, s.batchWrite(t, append(batchWrites(pk, 1), batchWrites(pk, 1)...)))
		_, err := s.batchRead(t, types.KeysAndAttributes{Keys: append(batchKeys(pk, 1), batchKeys(pk, 1)...)})
		wantInvalid(t, err)
	})
	t.Run("101 keys are too many", func(t *testing.T) {
		_, err := s.batchRead(t, types.KeysAndAttributes{Keys: batchKeys(pk, 101)})
		wantInvalid(t, err)
	})
	t.Run("no request is refused", func(t *testing.T) {
		_, err := s.Tables.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{}})
		wantInvalid(t, err)
		_, err = s.Tables.BatchGetItem(t.Context(), &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{}})
		wantInvalid(t, err)
	})
	t.Run("an invalid write spoils the batch", func(t *testing.T) {
		requests := batchWrites(pk, 2)
		requests[1].PutRequest.Item["bad"] = texts()
		wantInvalid(t, s.batchWrite(t, requests))
	})
}
