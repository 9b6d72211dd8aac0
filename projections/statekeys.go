package projections

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/projections/internal/plan"
)

// The state table's items, by readable key prefixes; docs/state-table.md
// describes each for operators.
const (
	statePartition = "pk"
	stateSort      = "sk"

	registryPartition = "registry" // sort: table, seeding, rule/<id>, file/<name>
	registryTable     = "table"
	registrySeeding   = "seeding"
	registryRule      = "rule/"
	registryFile      = "file/"
	parkedPartition   = "parked" // sort: <rule id>/<item key>
	tasksPartition    = "tasks"  // sort: <rule id>/<parent's key>, refill/<rule id>/<parent's key>

	// DynamoDB developer guide, "Constraints": longest partition and sort key, in bytes.
	partitionBytesMax = 2048
	sortBytesMax      = 1024
)

// stateKey is the key of an item in the state table.
type stateKey struct{ partition, sort string }

func newStateKey(partition, sort string) stateKey {
	return stateKey{bounded(partition, partitionBytesMax), bounded(sort, sortBytesMax)}
}

// bounded shortens a key that DynamoDB would refuse: its beginning, for the reader, then a hash of it all.
func bounded(text string, bytesMax int) string {
	if len(text) <= bytesMax {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	tail := "~" + hex.EncodeToString(sum[:])
	return strings.ToValidUTF8(text[:bytesMax-len(tail)], "") + tail
}

func (k stateKey) attributes() map[string]ddb.AttributeValue {
	return map[string]ddb.AttributeValue{statePartition: textValue(k.partition), stateSort: textValue(k.sort)}
}

func stateKeyOf(item map[string]ddb.AttributeValue) stateKey {
	return stateKey{textOf(item[statePartition]), textOf(item[stateSort])}
}

// entryPrefix begins the partition key of ledger entries.
const entryPrefix = "item/"

func entryKey(item change.Key) stateKey { return newStateKey(entryPrefix+item.String(), "entry") }

func accumulatorKey(g plan.GroupRef, suffix int) stateKey {
	return newStateKey("sum/"+g.ID+"/"+escape(g.Group)+"/"+strconv.Itoa(suffix), "accumulator")
}

func claimsKey(b *plan.Binding, target change.Key) stateKey { return claimsKeyOf(b.ID, target) }

func claimsKeyOf(ruleID string, target change.Key) stateKey {
	return newStateKey("claims/"+ruleID+"/"+target.String(), "claims")
}

func locatorKey(locator, value string) stateKey {
	return newStateKey("locator/"+locator+"/"+escape(value), "locator")
}

func referenceKey(b *plan.Binding, parent, child change.Key) stateKey {
	return newStateKey("references/"+b.ID+"/"+parent.String(), child.String())
}

func parentKey(b *plan.Binding, parent change.Key) stateKey {
	return newStateKey("parent/"+b.ID+"/"+parent.String(), "position")
}

func taskKey(t task) stateKey {
	sort := t.id.ID + "/" + t.id.Key.String()
	if t.refill {
		sort = "refill/" + sort
	}
	return newStateKey(tasksPartition, sort)
}

func parkedID(ruleID string, item change.Key) string { return ruleID + "/" + item.String() }

func parkedKey(id string) stateKey { return newStateKey(parkedPartition, id) }

func healsKey(b *plan.Binding, item change.Key, window int64) stateKey {
	return newStateKey("heals/"+b.ID+"/"+item.String(), strconv.FormatInt(window, 10))
}

// escape keeps a text apart from what follows it in a key.
func escape(text string) string { return change.Key{Partition: text}.String() }

func textValue(s string) ddb.AttributeValue { return &ddb.AttributeValueMemberS{Value: s} }

func numberValue(n int64) ddb.AttributeValue {
	return &ddb.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// textOf returns the text of an S or N, "" of anything else.
func textOf(v ddb.AttributeValue) string {
	switch v := v.(type) {
	case *ddb.AttributeValueMemberS:
		return v.Value
	case *ddb.AttributeValueMemberN:
		return v.Value
	}
	return ""
}

func numberOf(v ddb.AttributeValue) int64 {
	n, _ := strconv.ParseInt(textOf(v), 10, 64)
	return n
}

// countOf returns a count of operations or changes, 0 of anything that is none.
func countOf(v ddb.AttributeValue) int64 {
	n, _ := plan.ReadCount(attributes.FromTable(v))
	return n
}

// sortedTexts are the members of a set of texts, sorted.
func sortedTexts(v ddb.AttributeValue) []string { return slices.Sorted(slices.Values(textsOf(v))) }

func textsOf(v ddb.AttributeValue) []string {
	if set, ok := v.(*ddb.AttributeValueMemberSS); ok {
		return set.Value
	}
	return nil
}
