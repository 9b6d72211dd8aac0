package projections

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/rules"
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

// checkNames refuses a table whose key attributes have other names than in the rule file.
func (k tableKeys) checkNames(table string, set *rules.Set) error {
	if k.partition == set.Table.PartitionKey && k.sort == set.Table.SortKey {
		return nil
	}
	return &SetupError{
		Problem: fmt.Sprintf("the keys of table %s are [%s], but the rule file says [%s]", table,
			keyNames(k.partition, k.sort), keyNames(set.Table.PartitionKey, set.Table.SortKey)),
		Remedy: "write the table's own key names under table.keys",
	}
}

// CheckTable compares the rule file's keys with those of the table that it is for,
// as Open does: names, types, and templates that must give a number. The error is
// a *SetupError or a *rules.Problems.
func CheckTable(table *ddb.TableDescription, set *rules.Set) error {
	keys := keysOf(table)
	if err := keys.checkNames(aws.ToString(table.TableName), set); err != nil {
		return err
	}
	return set.CheckKeys(keys.partitionKind, keys.sortKind)
}
