package state

import (
	"cmp"
	"strings"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// TaskKey is the key of a task.
func TaskKey(t Task) table.Key {
	sort := t.Parent.ID + "/" + t.Parent.Key.String()
	if t.Refill {
		sort = "refill/" + sort
	}
	return table.NewKey(TasksPartition, sort)
}

// TasksPartition holds the tasks; sort: <rule id>/<parent's key>, refill/<rule id>/<parent's key>.
const TasksPartition = "tasks"

// TaskRow is a new task.
func TaskRow(t Task, now time.Time) table.Row {
	r := TaskKey(t).Attributes()
	r["rule"], r["parent"], r["at"] = table.Text(t.Parent.ID), table.Text(t.Parent.Key.String()), table.Text(string(t.At))
	r["cursor"] = &ddb.AttributeValueMemberM{Value: t.Cursor}
	r["children"], r["referring"], r["changes"] = table.Number(int64(t.Children)), table.Number(int64(t.Referring)), table.Number(1)
	r["since"] = table.Number(now.Unix())
	if t.Refill {
		r["refill"] = &ddb.AttributeValueMemberBOOL{Value: true}
		r["changes"] = table.Number(now.UnixNano()) // as no task before it had
	}
	return r
}

// ReadTask reads the row of a task. It reports false for one of rules that this
// engine does not know: they are newer.
func ReadTask(rd *table.Reader, p *plan.Planner, r table.Row) (t Task, known bool) {
	item := attributes.ItemFromTable(r)
	id, parent := audit.TaskOf(item)
	b := cmp.Or(p.ByID(id), p.Former(id))
	if b == nil {
		return Task{}, false
	}
	t = Task{
		Parent: plan.ItemRule{Binding: b, Key: parent}, Refill: item["refill"].Bool(), Row: table.KeyOf(r),
		Children: int(CountOf(r["children"])), Referring: int(CountOf(r["referring"])), Changes: table.NumberOf(r["changes"]),
	}
	t.At, _ = plan.ReadVersion(item["at"])
	if since := table.NumberOf(r["since"]); since > 0 {
		t.Since = time.Unix(since, 0).UTC()
	}
	if audit.TornTask(p, item) {
		t.Torn = TornError(r, "a task that is none")
	}
	if m, ok := r["cursor"].(*ddb.AttributeValueMemberM); ok && isPlace(rd, t, m.Value) {
		t.Cursor = m.Value
	}
	return t, true
}

// isPlace reports whether a task's children can go on behind a key. Behind another
// one DynamoDB refuses to look: then the task begins with the first child again.
func isPlace(rd *table.Reader, t Task, cursor table.Row) bool {
	if !t.Parent.Rule.Collection {
		return table.IsKey(cursor) && table.KeyOf(cursor).Partition == ReferenceKey(t.Parent.Binding, t.Parent.Key, change.Key{}).Partition
	}
	partition, prefix, ok := t.Parent.Rule.CollectionOf(t.Parent.Key)
	key := rd.KeyOf(cursor)
	behind := rd.SortKind == change.KindNumber || strings.HasPrefix(key.Sort, prefix)
	return ok && rd.IsItemKey(cursor) && key.Partition == partition && behind
}

// Task is the rest of a large fan-out, kept in the state table: one for each
// rule and parent, at the position that the fan-out raised. A later one of the
// same parent takes its place. Beside it there may be one that fills the children
// of a parent anew, which a later such request takes over.
type Task struct {
	Parent    plan.ItemRule // of which rule
	At        plan.Version  // the parent's position, "" if it has none
	Refill    bool
	Cursor    table.Row // the children go on behind this key
	Children  int       // looked at so far
	Referring int       // of those, how many refer to the parent
	Changes   int64     // of the stored task
	Since     time.Time // the rest became a task; zero for a row of an older version
	Row       table.Key
	Torn      error // another program has written in the row
}

// TaskIs is the condition that a stored task is as it was read.
func TaskIs(c *table.Expression, t Task) string {
	return c.Format("%n = %v AND %n = %v", "at", table.Text(string(t.At)), "changes", table.Number(t.Changes))
}
