package projections

import (
	"cmp"
	"strings"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/projections/internal/audit"
	"github.com/dynamill/dynamill/projections/internal/plan"
)

// readTask reads the row of a task. It reports false for one of rules that this
// engine does not know: they are newer.
func (rd *ruleReader) readTask(r row) (t task, known bool) {
	item := attributes.ItemFromTable(r)
	id, parent := audit.TaskOf(item)
	b := cmp.Or(rd.planner.ByID(id), rd.planner.Former(id))
	if b == nil {
		return task{}, false
	}
	t = task{
		id: plan.ItemRule{Binding: b, Key: parent}, refill: item["refill"].Bool(), row: stateKeyOf(r),
		children: int(countOf(r["children"])), referring: int(countOf(r["referring"])), changes: numberOf(r["changes"]),
	}
	t.at, _ = plan.ReadVersion(item["at"])
	if since := numberOf(r["since"]); since > 0 {
		t.since = time.Unix(since, 0).UTC()
	}
	if audit.TornTask(rd.planner, item) {
		t.torn = tornError(r, "a task that is none")
	}
	if m, ok := r["cursor"].(*ddb.AttributeValueMemberM); ok && rd.isPlace(t, m.Value) {
		t.cursor = m.Value
	}
	return t, true
}

// isPlace reports whether a task's children can go on behind a key. Behind another
// one DynamoDB refuses to look: then the task begins with the first child again.
func (rd *ruleReader) isPlace(t task, cursor row) bool {
	if !t.id.Rule.Collection {
		return isStateKey(cursor) && stateKeyOf(cursor).partition == referenceKey(t.id.Binding, t.id.Key, change.Key{}).partition
	}
	partition, prefix, ok := t.id.Rule.CollectionOf(t.id.Key)
	key := rd.keyOf(cursor)
	return ok && rd.isItemKey(cursor) && key.Partition == partition && (rd.sortN || strings.HasPrefix(key.Sort, prefix))
}

// isItemKey reports whether attributes are the key of an item that the user's table can hold.
func (rd *reader) isItemKey(key row) bool {
	numbers := map[string]bool{rd.partitionKey: rd.partitionN}
	if rd.sortKey != "" {
		numbers[rd.sortKey] = rd.sortN
	}
	return isKeyOf(key, numbers) && rd.canExist(rd.keyOf(key))
}

// isStateKey reports whether attributes are the key of a row that the state table can hold.
func isStateKey(key row) bool {
	k := stateKeyOf(key)
	return isKeyOf(key, map[string]bool{statePartition: false, stateSort: false}) && k.partition != "" && k.sort != "" &&
		len(k.partition) <= partitionBytesMax && len(k.sort) <= sortBytesMax
}

// isKeyOf reports whether attributes have these names and are numbers, or else texts.
func isKeyOf(key row, numbers map[string]bool) bool {
	for name, number := range numbers {
		_, text := key[name].(*ddb.AttributeValueMemberS)
		_, numeric := key[name].(*ddb.AttributeValueMemberN)
		if number && !numeric || !number && !text {
			return false
		}
	}
	return len(key) == len(numbers)
}
