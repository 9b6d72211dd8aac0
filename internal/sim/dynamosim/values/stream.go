package values

import (
	"bytes"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// ToStream copies an item into the types of the streams client; nil for nil.
func ToStream(item Item) map[string]streams.AttributeValue {
	if item == nil {
		return nil
	}
	copied := make(map[string]streams.AttributeValue, len(item))
	for name, av := range item {
		copied[name] = toStream(av)
	}
	return copied
}

func toStream(av types.AttributeValue) streams.AttributeValue {
	switch v := av.(type) {
	case *types.AttributeValueMemberS:
		return &streams.AttributeValueMemberS{Value: v.Value}
	case *types.AttributeValueMemberN:
		return &streams.AttributeValueMemberN{Value: v.Value}
	case *types.AttributeValueMemberB:
		return &streams.AttributeValueMemberB{Value: bytes.Clone(v.Value)}
	case *types.AttributeValueMemberBOOL:
		return &streams.AttributeValueMemberBOOL{Value: v.Value}
	case *types.AttributeValueMemberNULL:
		return &streams.AttributeValueMemberNULL{Value: v.Value}
	case *types.AttributeValueMemberSS:
		return &streams.AttributeValueMemberSS{Value: slices.Clone(v.Value)}
	case *types.AttributeValueMemberNS:
		return &streams.AttributeValueMemberNS{Value: slices.Clone(v.Value)}
	case *types.AttributeValueMemberBS:
		members := make([][]byte, len(v.Value))
		for i, b := range v.Value {
			members[i] = bytes.Clone(b)
		}
		return &streams.AttributeValueMemberBS{Value: members}
	case *types.AttributeValueMemberL:
		elements := make([]streams.AttributeValue, len(v.Value))
		for i, e := range v.Value {
			elements[i] = toStream(e)
		}
		return &streams.AttributeValueMemberL{Value: elements}
	case *types.AttributeValueMemberM:
		return &streams.AttributeValueMemberM{Value: ToStream(v.Value)}
	}
	return nil
}
