package lambdatest

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

func TestAnswersAreReadAsDocumented(t *testing.T) {
	var records []types.Record
	for _, sequence := range []string{"000000000000000000009", "10", "11"} {
		records = append(records, types.Record{Dynamodb: &types.StreamRecord{SequenceNumber: aws.String(sequence)}})
	}
	for answer, want := range map[string]int{
		``:                           3,
		`null`:                       3,
		`{}`:                         3,
		`{"batchItemFailures":null}`: 3,
		`{"batchItemFailures":[]}`:   3,
		`{"batchItemFailures":[{"itemIdentifier":"11"}]}`:                         2,
		`{"batchItemFailures":[{"itemIdentifier":"11"},{"itemIdentifier":"10"}]}`: 1,
		`{"batchItemFailures":[{"itemIdentifier":"000000000000000000009"}]}`:      0,
		`{"batchItemFailures":[{"itemIdentifier":"0011"}]}`:                       2,
		`{"batchItemFailures":[{"itemIdentifier":""}]}`:                           0,
		`{"batchItemFailures":[{"itemIdentifier":null}]}`:                         0,
		`{"batchItemFailures":[{"itemIdentifer":"11"}]}`:                          0,
		`{"batchItemFailures":[{"itemIdentifier":"12"}]}`:                         0,
		`{"batchItemFailures":[{"itemIdentifier":"11"},{"itemIdentifier":"x"}]}`:  0,
		`"done"`: 0,
		`[`:      0,
	} {
		if got := doneCount([]byte(answer), records); got != want {
			t.Errorf("%s: %d records are done, want %d", answer, got, want)
		}
	}
}
