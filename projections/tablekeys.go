package projections

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
)

// tableKeys are the key attributes that a table's description names, and their types.
type tableKeys struct {
	partition, sort         string // sort is "" for a table without a sort key
	partitionKind, sortKind change.Kind
}

func keysOf(table *ddb.TableDescription) (k tableKeys) {
	kinds := map[string]change.Kind{}
	for _, d := range table.AttributeDefinitions {
		kinds[aws.ToString(d.AttributeName)] = map[ddb.ScalarAttributeType]change.Kind{
			ddb.ScalarAttributeTypeS: change.KindString, ddb.ScalarAttributeTypeN: change.KindNumber, ddb.ScalarAttributeTypeB: change.KindBinary,
		}[d.AttributeType]
	}
	for _, key := range table.KeySchema {
		if key.KeyType == ddb.KeyTypeHash {
			k.partition = aws.ToString(key.AttributeName)
		} else {
			k.sort = aws.ToString(key.AttributeName)
		}
	}
	k.partitionKind, k.sortKind = kinds[k.partition], kinds[k.sort]
	return k
}
