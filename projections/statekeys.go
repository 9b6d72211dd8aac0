package projections

import (
	"strconv"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/projections/internal/plan"
	"github.com/dynamill/dynamill/projections/internal/table"
)

// The state table's items, by readable key prefixes; docs/state-table.md
// describes each for operators.
const (
	registryPartition = "registry" // sort: table, seeding, rule/<id>, file/<name>
	registryTable     = "table"
	registrySeeding   = "seeding"
	registryRule      = "rule/"
	registryFile      = "file/"
	parkedPartition   = "parked" // sort: <rule id>/<item key>
	tasksPartition    = "tasks"  // sort: <rule id>/<parent's key>, refill/<rule id>/<parent's key>

)

// entryPrefix begins the partition key of ledger entries.
const entryPrefix = "item/"

func entryKey(item change.Key) table.Key { return table.NewKey(entryPrefix+item.String(), "entry") }

func accumulatorKey(g plan.GroupRef, suffix int) table.Key {
	return table.NewKey("sum/"+g.ID+"/"+escape(g.Group)+"/"+strconv.Itoa(suffix), "accumulator")
}

func claimsKey(b *plan.Binding, target change.Key) table.Key { return claimsKeyOf(b.ID, target) }

func claimsKeyOf(ruleID string, target change.Key) table.Key {
	return table.NewKey("claims/"+ruleID+"/"+target.String(), "claims")
}

func locatorKey(locator, value string) table.Key {
	return table.NewKey("locator/"+locator+"/"+escape(value), "locator")
}

func referenceKey(b *plan.Binding, parent, child change.Key) table.Key {
	return table.NewKey("references/"+b.ID+"/"+parent.String(), child.String())
}

func parentKey(b *plan.Binding, parent change.Key) table.Key {
	return table.NewKey("parent/"+b.ID+"/"+parent.String(), "position")
}

func taskKey(t task) table.Key {
	sort := t.id.ID + "/" + t.id.Key.String()
	if t.refill {
		sort = "refill/" + sort
	}
	return table.NewKey(tasksPartition, sort)
}

func parkedID(ruleID string, item change.Key) string { return ruleID + "/" + item.String() }

func parkedKey(id string) table.Key { return table.NewKey(parkedPartition, id) }

func healsKey(b *plan.Binding, item change.Key, window int64) table.Key {
	return table.NewKey("heals/"+b.ID+"/"+item.String(), strconv.FormatInt(window, 10))
}

// escape keeps a text apart from what follows it in a key.
func escape(text string) string { return change.Key{Partition: text}.String() }

// countOf returns a count of operations or changes, 0 of anything that is none.
func countOf(v ddb.AttributeValue) int64 {
	n, _ := plan.ReadCount(attributes.FromTable(v))
	return n
}
