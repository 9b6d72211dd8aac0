package lambdatest

import (
	"bytes"
	"encoding/json"
	"math/big"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// doneCount reads a partial batch response and returns how many of the records it
// says to be done: those before the lowest sequence number that it names (Lambda
// developer guide, "Configuring partial batch response with DynamoDB and Lambda").
// An empty answer or list is success. An identifier that is empty, null, missing
// or of no record in the batch, and an answer that is something else altogether,
// say that nothing is done.
func doneCount(answer []byte, records []types.Record) int {
	if len(bytes.TrimSpace(answer)) == 0 {
		return len(records)
	}
	var response *struct {
		Failures []struct {
			Identifier *string `json:"itemIdentifier"`
		} `json:"batchItemFailures"`
	}
	if json.Unmarshal(answer, &response) != nil {
		return 0
	}
	if response == nil || len(response.Failures) == 0 {
		return len(records)
	}
	done := len(records)
	for _, failure := range response.Failures {
		at := indexOf(aws.ToString(failure.Identifier), records)
		if at < 0 {
			return 0
		}
		done = min(done, at)
	}
	return done
}

// indexOf finds the record with a sequence number, -1 if there is none. Sequence
// numbers are numbers: leading zeros mean nothing.
func indexOf(sequence string, records []types.Record) int {
	wanted, ok := new(big.Int).SetString(sequence, 10)
	if !ok {
		return -1
	}
	for i, r := range records {
		n, ok := new(big.Int).SetString(aws.ToString(r.Dynamodb.SequenceNumber), 10)
		if ok && n.Cmp(wanted) == 0 {
			return i
		}
	}
	return -1
}
