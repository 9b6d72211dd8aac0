package projections

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/rules"
)

// CheckTable compares the rule file's keys with those of the table that it is for,
// as Open does: names, types, and templates that must give a number. The error is
// a *SetupError or a *rules.Problems.
func CheckTable(table *ddb.TableDescription, set *rules.Set) error {
	return checkKeys(aws.ToString(table.TableName), keysOf(table), set)
}

// describeTable learns the user table's keys, checks the rules against them, and returns the table's id.
func describeTable(ctx context.Context, ts *tables, set *rules.Set) (id string, err error) {
	keys, id, err := ts.describe(ctx)
	if err != nil {
		return "", err
	}
	return id, checkKeys(ts.table, keys, set)
}

func checkKeys(table string, keys tableKeys, set *rules.Set) error {
	if keys.partition != set.Table.PartitionKey || keys.sort != set.Table.SortKey {
		return &SetupError{
			Problem: fmt.Sprintf("the keys of table %s are [%s], but the rule file says [%s]", table,
				keyNames(keys.partition, keys.sort), keyNames(set.Table.PartitionKey, set.Table.SortKey)),
			Remedy: "write the table's own key names under table.keys",
		}
	}
	return set.CheckKeys(keys.partitionKind, keys.sortKind)
}

func keyNames(partition, sort string) string {
	if sort == "" {
		return partition
	}
	return partition + ", " + sort
}
