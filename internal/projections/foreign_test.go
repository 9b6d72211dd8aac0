package projections

import (
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// TestATableThatIsSomebodyElsesIsNoStateTable opens engines on tables that hold something else.
func TestATableThatIsSomebodyElsesIsNoStateTable(t *testing.T) {
	for name, test := range map[string]struct {
		table, partition string
		item             change.Item
		problem          string
	}{
		"the table itself":    {table: "app", problem: "cannot be its own state table"},
		"one with other keys": {table: "leases", partition: "leaseKey", problem: "is no state table"},
		"one of the same key names": {table: "other", partition: "pk", item: change.Item{"pk": s("USER#u1"), "sk": s("PROFILE")},
			problem: "holds items"},
		"an empty one": {table: "fresh", partition: "pk"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, socialRules)
			if test.partition != "" {
				w.createKeyed(test.table, test.partition)
			}
			if test.item != nil {
				if _, err := w.sim.PutItem(w.ctx, &dynamodb.PutItemInput{TableName: &test.table, Item: attributes.ItemToTable(test.item)}); err != nil {
					t.Fatal(err)
				}
			}
			_, err := Open(w.ctx, Config{Client: w.sim, Table: "app", StateTable: test.table, Rules: loadRules(t, socialRules)})
			if test.problem == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if setup := new(table.SetupError); !errors.As(err, &setup) || !strings.Contains(err.Error(), test.problem) {
				t.Errorf("got %v, want a SetupError that %q", err, test.problem)
			}
		})
	}
}
