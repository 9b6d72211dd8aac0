package main

import (
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

const (
	partitionKey = "pk"
	sortKey      = "sk"
	keySeparator = "|" // between the keys of an item where both are one text

	note = "as delivered before, to the door at the back of the house, after the bell has rung twice; leave it with the neighbours if it rains"
)

// workload is what a table holds before, what changes, and what should be derived from that.
type workload struct {
	name, unit string // unit is what the changes are counted in
	n          int
	rules      string // of dynamill
	contenders []string
	before     []attributes
	changes    []attributes
	attribute  string            // the derived one
	wanted     map[string]string // its values by the keys of their items
}

// item makes an item of texts.
func item(partition, sort string, namesAndValues ...string) attributes {
	made := keyOf(partition, sort)
	for i := 0; i < len(namesAndValues); i += 2 {
		made[namesAndValues[i]] = &types.AttributeValueMemberS{Value: namesAndValues[i+1]}
	}
	return made
}

func keyOf(partition, sort string) attributes {
	return attributes{partitionKey: &types.AttributeValueMemberS{Value: partition}, sortKey: &types.AttributeValueMemberS{Value: sort}}
}

func number(n int) types.AttributeValue { return &types.AttributeValueMemberN{Value: strconv.Itoa(n)} }

// text returns a text or a number of a record, "" for any other value.
func text(v streams.AttributeValue) string {
	switch v := v.(type) {
	case *streams.AttributeValueMemberS:
		return v.Value
	case *streams.AttributeValueMemberN:
		return v.Value
	}
	return ""
}
