package projections

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/awscall"
	"github.com/dynamill/dynamill/projections/internal/kinds/copies"
	"github.com/dynamill/dynamill/projections/internal/registry"
	"github.com/dynamill/dynamill/projections/internal/state"
	"github.com/dynamill/dynamill/projections/internal/table"
)

// fanOutMaxDefault is how many children a fan-out writes before the rest becomes a
// task, and how many a task writes between two places of its cursor: what a crash
// does again.
const fanOutMaxDefault = 1000

// putTask keeps what is left of a fan-out, unless it is kept already: then a
// record came again, and the task is further than the record. A refill goes back
// to where it was asked for again: what the children behind that place hold may
// have been spoiled since.
func (e *Engine) putTask(ctx context.Context, t state.Task) error {
	below := "<"
	if t.Refill {
		below = "<="
	}
	c := table.NewExpression()
	condition := state.CopiedBefore(c, t.Parent.Binding, below, t.At)
	err := e.tables.PutState(ctx, t.Parent.ID, "keeping the rest of a fan-out of "+t.Parent.Key.String(), state.TaskRow(t, e.now()), condition, c)
	if err != nil && awscall.Classify(err) == awscall.Condition {
		return nil
	}
	if err == nil {
		e.counters.Tasks.Add(1)
	}
	return err
}

// readTasks reads the tasks of the rules that this engine knows, former ones among them.
func (rd *ruleReader) readTasks(ctx context.Context) ([]state.Task, error) {
	c := table.NewExpression()
	in := rd.reader.StateQuery(c.Format("%n = %v", table.PK, table.Text(state.TasksPartition)), c)
	var tasks []state.Task
	err := rd.reader.QueryPages(ctx, "listing tasks", in, func(rows []table.Row) error {
		for _, r := range rows {
			if t, known := state.ReadTask(rd.reader, rd.planner, r); known {
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
func (e *Engine) tellTask(t state.Task) {
	if e.taskProgress != nil {
		e.taskProgress(TaskProgress{Rule: t.Parent.Rule.Name, Parent: t.Parent.Key, Children: t.Children})
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
	failed := map[table.Key]error{}
	ended := func(err error) error { return errors.Join(append(slices.Collect(maps.Values(failed)), err)...) }
	for {
		tasks, err := e.readTasks(ctx)
		if err != nil {
			return pieces, ended(err)
		}
		tasks = slices.DeleteFunc(tasks, func(t state.Task) bool { return failed[t.Row] != nil })
		if len(tasks) == 0 {
			return pieces, ended(nil)
		}
		for i := range tasks {
			t := tasks[(i+e.suffix)%len(tasks)] // not every worker at the same one
			switch err := e.registry.Under(ctx, func() error { return e.workPiece(ctx, t) }); {
			case err == nil:
				pieces++
			case errors.Is(err, errTaskMoved):
			case ctx.Err() != nil || errors.Is(err, registry.ErrEpochMoved):
				return pieces, ended(err)
			default:
				failed[t.Row] = fmt.Errorf("working off the fan-out of %s: %w", t.Parent.Key, err)
			}
		}
	}
}

// workPiece writes the parent, as it is now, to the next children. A child that was
// written or filled since the task's position has that state, or a later one.
func (e *Engine) workPiece(ctx context.Context, t state.Task) error {
	if t.Torn != nil {
		return t.Torn
	}
	if t.Parent.Former {
		return e.endTask(ctx, t)
	}
	at, err := e.parentAt(ctx, t.Parent)
	if err != nil {
		return err
	}
	if at != t.At {
		return e.endTask(ctx, t) // a later fan-out has begun, and looks at every child itself
	}
	items, err := e.tables.ReadItems(ctx, "reading parent "+t.Parent.Key.String(), []change.Key{t.Parent.Key})
	if err != nil {
		return err
	}
	parent := table.Image(e.parentItem(t.Parent.Binding, t.Parent.Key, items))
	pw := parentWrite{
		b: t.Parent.Binding, parent: t.Parent.Key, version: t.At.Rederived(1), since: t.At, values: copies.Of(t.Parent.Rule).Given(parent), refill: t.Refill,
	}
	referring, next, err := e.writeChildren(ctx, pw, t.Cursor, e.fanOutMax)
	if table.Refusal(err) != "" {
		return errors.Join(e.parkRefused(ctx, t.Parent.Binding, t.Parent.Key, err), e.endTask(ctx, t))
	}
	if err != nil {
		return err
	}
	t.Referring, t.Children, t.Cursor = t.Referring+referring, t.Children+e.fanOutMax, next
	e.tellTask(t)
	if len(next) > 0 {
		return e.saveTask(ctx, t)
	}
	if parent == nil && t.Referring == 0 {
		if err := e.retireParent(ctx, t.Parent, t.At); err != nil {
			return err
		}
	}
	return e.endTask(ctx, t)
}

func (e *Engine) saveTask(ctx context.Context, t state.Task) error {
	c := table.NewExpression()
	set := c.Format("SET %n = %v, %n = %v", "cursor", &ddb.AttributeValueMemberM{Value: t.Cursor}, "children", table.Number(int64(t.Children)))
	set += c.Format(", %n = %v, %n = %v", "referring", table.Number(int64(t.Referring)), "changes", table.Number(t.Changes+1))
	doing := "saving the place of a fan-out of " + t.Parent.Key.String()
	ok, err := e.tables.UpdateState(ctx, t.Parent.ID, doing, state.TaskKey(t), set, state.TaskIs(c, t), c)
	if err == nil && !ok {
		return errTaskMoved
	}
	return err
}

// endTask deletes a task, unless it has moved.
func (e *Engine) endTask(ctx context.Context, t state.Task) error {
	c := table.NewExpression()
	return e.tables.DeleteState(ctx, t.Parent.ID, "ending a fan-out of "+t.Parent.Key.String(), state.TaskKey(t), state.TaskIs(c, t), c)
}
