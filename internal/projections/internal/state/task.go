package state

import (
	"strconv"
	"strings"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// TaskKey is the key of a task.
func TaskKey(t Task) table.Key {
	sort := t.Parent.ID + "/" + t.Parent.Key.String()
	switch {
	case t.Refill:
		sort = "refill/" + sort
	case t.Range > 0:
		sort = audit.RangePrefix(strconv.Itoa(t.Range)) + sort
	}
	return table.NewKey(TasksPartition, sort)
}

// TasksPartition holds tasks (sort key: <rule id>/<parent>, after "refill/" or "range#<number>/" where it is one) and roll-ups that were
// put off (rollup#/<rule id>/<group>).
const TasksPartition = "tasks"

// TaskRow is a new task.
func TaskRow(t Task, now time.Time) table.Row {
	r := TaskKey(t).Attributes()
	r["rule"], r["parent"], r["a"] = table.Text(t.Parent.ID), table.Text(t.Parent.Key.String()), table.Text(string(t.At))
	r["cursor"] = &ddb.AttributeValueMemberM{Value: t.Cursor}
	r["children"], r["referring"] = table.Number(int64(t.Children)), table.Number(int64(t.Referring))
	r["changes"] = table.Number(now.UnixNano()) // as no task before it had
	if t.Since.IsZero() {
		t.Since = now
	}
	r["since"] = table.Number(t.Since.Unix())
	if !t.Until.IsZero() {
		r["until"] = table.Number(t.Until.Unix())
	}
	if t.Refill {
		r["refill"] = &ddb.AttributeValueMemberBOOL{Value: true}
	}
	if t.Range > 0 {
		r["range"], r["size"] = table.Number(int64(t.Range)), table.Number(int64(t.Size))
		r["end"] = &ddb.AttributeValueMemberM{Value: t.End}
	}
	return r
}

// ReadTask reads the row of a task. It reports false for one of rules that the planner does not know: they are newer.
func ReadTask(rd *table.Reader, p *plan.Planner, r table.Row) (t Task, known bool) {
	item := attributes.ItemFromTable(r)
	if strings.HasPrefix(item["sk"].Text(), audit.RollupPrefix) {
		return Task{}, false // a roll-up that was put off
	}
	id, parent := audit.TaskOf(item)
	b := p.AnyByID(id)
	if b == nil {
		return Task{}, false
	}
	t = Task{
		Parent: plan.ItemRule{Binding: b, Key: parent}, Refill: item["refill"].Bool(), Row: table.KeyOf(r),
		Children: int(CountOf(r["children"])), Referring: int(CountOf(r["referring"])), Changes: table.NumberOf(r["changes"]),
		Range: int(CountOf(r["range"])), Size: int(CountOf(r["size"])), Ranges: int(CountOf(r["ranges"])), Done: item["done"].Bool(),
		Until: time.Unix(table.NumberOf(r["until"]), 0), RangesEnded: int(CountOf(r["rangesEnded"])),
		RangesChildren: int(CountOf(r["rangesChildren"])), RangesReferring: int(CountOf(r["rangesReferring"])),
	}
	t.At, _ = stamp.ReadVersion(item["a"])
	t.until = item["until"]
	if since := table.NumberOf(r["since"]); since > 0 {
		t.Since = time.Unix(since, 0).UTC()
	}
	if audit.TornTask(p, item) {
		t.Torn = TornError(r, "no valid task")
	}
	if m, ok := r["cursor"].(*ddb.AttributeValueMemberM); ok && isPlace(rd, t, m.Value) {
		t.Cursor = m.Value
	}
	if m, ok := r["end"].(*ddb.AttributeValueMemberM); ok && isPlace(rd, t, m.Value) {
		t.End = m.Value
	}
	return t, true
}

// isPlace reports whether a task's children can go on behind a key. Otherwise it begins with the first child again.
func isPlace(rd *table.Reader, t Task, cursor table.Row) bool {
	if !t.Parent.Rule.Collection {
		return table.IsKey(cursor) && table.KeyOf(cursor).Partition == ReferenceKey(t.Parent.Binding, t.Parent.Key, change.Key{}).Partition
	}
	partition, prefix, ok := t.Parent.Rule.Join.CollectionOf(t.Parent.Key)
	key := rd.KeyOf(cursor)
	behind := rd.SortKind == change.KindNumber || strings.HasPrefix(key.Sort, prefix)
	return ok && rd.IsItemKey(cursor) && key.Partition == partition && behind
}

// Task is the rest of a large fan-out, one for each rule and parent, at the position that the fan-out raised. A later one of the same
// parent takes its place. Beside it there may be one that fills the children of a parent anew, and one for each range cut off it.
type Task struct {
	Parent    plan.ItemRule // of which rule
	At        stamp.Version // the parent's position, "" if it has none
	Refill    bool
	Cursor    table.Row // the children go on behind this key
	Children  int       // looked at so far
	Referring int       // of those, how many refer to the parent
	Changes   int64     // of the stored task
	Since     time.Time // the rest became a task
	Until     time.Time // a worker holds it until then, or holds on
	until     change.Value
	Row       table.Key
	Torn      error // another program has written in the row

	Range int       // the number of a range that was cut off, from 1; 0 for the fan-out's own task
	End   table.Row // of a range: the last key; nil: to the last child
	Size  int       // of a range: the children that were seen when it was cut off

	Ranges         int  // how many were cut off
	Done           bool // but for the ranges
	RangesEnded    int
	RangesChildren int // what the ranges that have ended looked at
	// RangesReferring is how many of these refer to the parent.
	RangesReferring int
}

// TaskTerm is how long other workers leave a held task alone. It only keeps workers from the same work, so clocks need not agree.
const TaskTerm = 20 * time.Second

// heldMax bounds how far ahead the end of a term is believed: a worker whose clock is wrong may have crashed.
const heldMax = time.Minute

// IsHeld reports whether a worker works on a task at this time.
func (t Task) IsHeld(now time.Time) bool {
	return t.Until.After(now) && t.Until.Before(now.Add(heldMax))
}

// IsOfFanOut reports whether two tasks are of the same fan-out.
func (t Task) IsOfFanOut(o Task) bool {
	return t.Parent == o.Parent && t.At == o.At && t.Refill == o.Refill && t.Since.Equal(o.Since)
}

// LookedAt counts the children that the fan-out of a task has looked at, in all its ranges.
func (t Task) LookedAt(all []Task) (children int) {
	for _, o := range all {
		if o.IsOfFanOut(t) {
			children += o.Children + o.RangesChildren
		}
	}
	return children
}

// TaskIsHeldAs is the condition that no worker has taken, held or released a stored task since it was read.
func TaskIsHeldAs(c *table.Expression, t Task) string { return TaskIs(c, t) + c.Same("until", t.until) }

// TaskIsOfFanOut is the condition that a stored task is of the same fan-out.
func TaskIsOfFanOut(c *table.Expression, t Task) string {
	return c.Format("%n = %v AND %n = %v", "a", table.Text(string(t.At)), "since", table.Number(t.Since.Unix()))
}

// TaskIs is the condition that the place of a stored task is as it was read.
func TaskIs(c *table.Expression, t Task) string {
	return c.Format("%n = %v AND %n = %v", "a", table.Text(string(t.At)), "changes", table.Number(t.Changes))
}
