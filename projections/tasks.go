package projections

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/projections/internal/kinds/copies"
	"github.com/dynamill/dynamill/projections/internal/plan"
)

// fanOutMaxDefault is how many children a fan-out writes before the rest becomes a
// task, and how many a task writes between two places of its cursor: what a crash
// does again.
const fanOutMaxDefault = 1000

// task is the rest of a large fan-out, kept in the state table: one for each
// rule and parent, at the position that the fan-out raised. A later one of the
// same parent takes its place. Beside it there may be one that fills the children
// of a parent anew, which a later such request takes over.
type task struct {
	id        plan.ItemRule
	at        plan.Version // the parent's position, "" if it has none
	refill    bool
	cursor    row       // the children go on behind this key
	children  int       // looked at so far
	referring int       // of those, how many refer to the parent
	changes   int64     // of the stored task
	since     time.Time // the rest became a task; zero for a row of an older version
	row       stateKey
	torn      error // another program has written in the row
}

// putTask keeps what is left of a fan-out, unless it is kept already: then a
// record came again, and the task is further than the record. A refill goes back
// to where it was asked for again: what the children behind that place hold may
// have been spoiled since.
func (e *Engine) putTask(ctx context.Context, t task) error {
	item := taskKey(t).attributes()
	item["rule"], item["parent"], item["at"] = textValue(t.id.ID), textValue(t.id.Key.String()), textValue(string(t.at))
	item["cursor"] = &ddb.AttributeValueMemberM{Value: t.cursor}
	item["children"], item["referring"], item["changes"] = numberValue(int64(t.children)), numberValue(int64(t.referring)), numberValue(1)
	item["since"] = numberValue(e.now().Unix())
	below := "<"
	if t.refill {
		below = "<="
		item["refill"] = &ddb.AttributeValueMemberBOOL{Value: true}
		item["changes"] = numberValue(e.now().UnixNano()) // as no task before it had
	}
	c := newExpression()
	condition := c.copiedBefore(t.id.Binding, below, t.at)
	err := e.putState(ctx, t.id.ID, "keeping the rest of a fan-out of "+t.id.Key.String(), &dynamodb.PutItemInput{
		Item: item, ConditionExpression: &condition,
		ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
	})
	if err != nil && classify(err) == classCondition {
		return nil
	}
	if err == nil {
		e.counters.Tasks.Add(1)
	}
	return err
}

// readTasks reads the tasks of the rules that this engine knows, former ones among them.
func (rd *reader) readTasks(ctx context.Context) ([]task, error) {
	c := newExpression()
	condition := c.sprintf("%n = %v", statePartition, textValue(tasksPartition))
	in := &dynamodb.QueryInput{
		TableName: &rd.stateTable, ConsistentRead: ptr(true), KeyConditionExpression: &condition,
		ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
	}
	var tasks []task
	err := rd.queryPages(ctx, "listing tasks", in, func(rows []row) error {
		for _, r := range rows {
			if t, known := rd.readTask(r); known {
				tasks = append(tasks, t)
			}
		}
		return nil
	})
	return tasks, err
}

// TaskProgress is how far a task is.
type TaskProgress struct {
	Rule     string
	Parent   change.Key
	Children int // looked at so far
}

// tellTask reports a piece that is done.
func (e *Engine) tellTask(t task) {
	if e.taskProgress != nil {
		e.taskProgress(TaskProgress{Rule: t.id.Rule.Name, Parent: t.id.Key, Children: t.children})
	}
}

// errTaskMoved says that another process has worked on a task since it was read.
var errTaskMoved = errors.New("another process works on this task")

// WorkTasks works off what large fan-outs have left, piece by piece and in
// turns, until nothing is left, and returns how many pieces it did. It may be
// stopped by its context at any time, run in several processes, and beside
// records: what a crash leaves, the next call takes up. A task that fails holds
// up no other one; the error says which failed.
func (e *Engine) WorkTasks(ctx context.Context) (pieces int, err error) {
	failed := map[stateKey]error{}
	ended := func(err error) error { return errors.Join(append(slices.Collect(maps.Values(failed)), err)...) }
	for {
		tasks, err := e.readTasks(ctx)
		if err != nil {
			return pieces, ended(err)
		}
		tasks = slices.DeleteFunc(tasks, func(t task) bool { return failed[t.row] != nil })
		if len(tasks) == 0 {
			return pieces, ended(nil)
		}
		for i := range tasks {
			t := tasks[(i+e.suffix)%len(tasks)] // not every worker at the same one
			switch err := e.underRegistry(ctx, func() error { return e.workPiece(ctx, t) }); {
			case err == nil:
				pieces++
			case errors.Is(err, errTaskMoved):
			case ctx.Err() != nil || errors.Is(err, ErrEpochMoved):
				return pieces, ended(err)
			default:
				failed[t.row] = fmt.Errorf("working off the fan-out of %s: %w", t.id.Key, err)
			}
		}
	}
}

// workPiece writes the parent, as it is now, to the next children. A child that was
// written or filled since the task's position has that state, or a later one.
func (e *Engine) workPiece(ctx context.Context, t task) error {
	if t.torn != nil {
		return t.torn
	}
	if t.id.Former {
		return e.endTask(ctx, t)
	}
	at, err := e.parentAt(ctx, t.id)
	if err != nil {
		return err
	}
	if at != t.at {
		return e.endTask(ctx, t) // a later fan-out has begun, and looks at every child itself
	}
	items, err := e.readItems(ctx, "reading parent "+t.id.Key.String(), []change.Key{t.id.Key})
	if err != nil {
		return err
	}
	parent := image(e.parentItem(t.id.Binding, t.id.Key, items))
	pw := parentWrite{
		b: t.id.Binding, parent: t.id.Key, version: t.at.Rederived(1), since: t.at, values: copies.Of(t.id.Rule).Given(parent), refill: t.refill,
	}
	referring, next, err := e.writeChildren(ctx, pw, t.cursor, e.fanOutMax)
	if refusal(err) != "" {
		return errors.Join(e.parkRefused(ctx, t.id.Binding, t.id.Key, err), e.endTask(ctx, t))
	}
	if err != nil {
		return err
	}
	t.referring, t.children, t.cursor = t.referring+referring, t.children+e.fanOutMax, next
	e.tellTask(t)
	if len(next) > 0 {
		return e.saveTask(ctx, t)
	}
	if parent == nil && t.referring == 0 {
		if err := e.retireParent(ctx, t.id, t.at); err != nil {
			return err
		}
	}
	return e.endTask(ctx, t)
}

func (e *Engine) saveTask(ctx context.Context, t task) error {
	c := newExpression()
	set := c.sprintf("SET %n = %v, %n = %v", "cursor", &ddb.AttributeValueMemberM{Value: t.cursor}, "children", numberValue(int64(t.children)))
	set += c.sprintf(", %n = %v, %n = %v", "referring", numberValue(int64(t.referring)), "changes", numberValue(t.changes+1))
	ok, err := e.update(ctx, t.id.ID, "saving the place of a fan-out of "+t.id.Key.String(), e.stateUpdate(taskKey(t), set, c.taskIs(t), c))
	if err == nil && !ok {
		return errTaskMoved
	}
	return err
}

// endTask deletes a task, unless it has moved.
func (e *Engine) endTask(ctx context.Context, t task) error {
	c := newExpression()
	return e.deleteState(ctx, t.id.ID, "ending a fan-out of "+t.id.Key.String(), taskKey(t), c.taskIs(t), c)
}

// taskIs is the condition that a stored task is as it was read.
func (c *expression) taskIs(t task) string {
	return c.sprintf("%n = %v AND %n = %v", "at", textValue(string(t.at)), "changes", numberValue(t.changes))
}
