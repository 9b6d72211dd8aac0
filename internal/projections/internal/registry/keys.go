package registry

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/projections/internal/table"
	"github.com/dynamill/dynamill/internal/rules"
)

// CheckTable compares the rule file's keys with those of the table that it is for,
// as Open does: names, types, and templates that must give a number. The error is
// a *table.SetupError or a *rules.Problems.
func CheckTable(t *ddb.TableDescription, set *rules.Set) error {
	return checkKeys(aws.ToString(t.TableName), table.SchemaOf(t), set)
}

// Describe learns the user table's keys, checks the rules against them, and returns the table's id.
func Describe(ctx context.Context, ts *table.Tables, set *rules.Set) (id string, err error) {
	id, err = ts.Describe(ctx)
	if err != nil {
		return "", err
	}
	return id, checkKeys(ts.Table, ts.Schema, set)
}

func checkKeys(name string, keys table.Schema, set *rules.Set) error {
	if keys.PartitionKey != set.Table.PartitionKey || keys.SortKey != set.Table.SortKey {
		return &table.SetupError{
			Problem: fmt.Sprintf("the keys of table %s are [%s], but the rule file says [%s]", name,
				keyNames(keys.PartitionKey, keys.SortKey), keyNames(set.Table.PartitionKey, set.Table.SortKey)),
			Remedy: "write the table's own key names under table.keys",
		}
	}
	return set.CheckKeys(keys.PartitionKind, keys.SortKind)
}

func keyNames(partition, sort string) string { return strings.TrimSuffix(partition+", "+sort, ", ") }
