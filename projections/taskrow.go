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
	"github.com/dynamill/dynamill/projections/internal/table"
)

// readTask reads the row of a task. It reports false for one of rules that this
// engine does not know: they are newer.
func (rd *ruleReader) readTask(r table.Row) (t task, known bool) {
	item := attributes.ItemFromTable(r)
	id, parent := audit.TaskOf(item)
	b := cmp.Or(rd.planner.ByID(id), rd.planner.Former(id))
	if b == nil {
		return task{}, false
	}
	t = task{
		id: plan.ItemRule{Binding: b, Key: parent}, refill: item["refill"].Bool(), row: table.KeyOf(r),
		children: int(countOf(r["children"])), referring: int(countOf(r["referring"])), changes: table.NumberOf(r["changes"]),
	}
	t.at, _ = plan.ReadVersion(item["at"])
	if since := table.NumberOf(r["since"]); since > 0 {
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
func (rd *ruleReader) isPlace(t task, cursor table.Row) bool {
	if !t.id.Rule.Collection {
		return table.IsKey(cursor) && table.KeyOf(cursor).Partition == referenceKey(t.id.Binding, t.id.Key, change.Key{}).Partition
	}
	partition, prefix, ok := t.id.Rule.CollectionOf(t.id.Key)
	key := rd.reader.KeyOf(cursor)
	return ok && rd.reader.IsItemKey(cursor) && key.Partition == partition && (rd.reader.SortN || strings.HasPrefix(key.Sort, prefix))
}
