package table

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
)

// Schema are the key attributes that a table's description names, and their types.
type Schema struct {
	Partition, Sort         string // Sort is "" for a table without a sort key
	PartitionKind, SortKind change.Kind
}

// SchemaOf reads a table's description.
func SchemaOf(table *ddb.TableDescription) (k Schema) {
	kinds := map[string]change.Kind{}
	for _, d := range table.AttributeDefinitions {
		kinds[aws.ToString(d.AttributeName)] = map[ddb.ScalarAttributeType]change.Kind{
			ddb.ScalarAttributeTypeS: change.KindString, ddb.ScalarAttributeTypeN: change.KindNumber, ddb.ScalarAttributeTypeB: change.KindBinary,
		}[d.AttributeType]
	}
	for _, key := range table.KeySchema {
		if key.KeyType == ddb.KeyTypeHash {
			k.Partition = aws.ToString(key.AttributeName)
		} else {
			k.Sort = aws.ToString(key.AttributeName)
		}
	}
	k.PartitionKind, k.SortKind = kinds[k.Partition], kinds[k.Sort]
	return k
}
