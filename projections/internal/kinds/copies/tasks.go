package copies

import (
	"context"
	"errors"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/awscall"
	"github.com/dynamill/dynamill/projections/internal/host"
	"github.com/dynamill/dynamill/projections/internal/state"
	"github.com/dynamill/dynamill/projections/internal/table"
)

// ErrTaskMoved says that another process has worked on a task since it was read.
var ErrTaskMoved = errors.New("another process works on this task")

// putTask keeps what is left of a fan-out, unless it is kept already: then a
// record came again, and the task is further than the record. A refill goes back
// to where it was asked for again: what the children behind that place hold may
// have been spoiled since.
func (w run) putTask(ctx context.Context, t state.Task) error {
	below := "<"
	if t.Refill {
		below = "<="
	}
	c := table.NewExpression()
	condition := state.CopiedBefore(c, t.Parent.Binding, below, t.At)
	err := w.Tables.PutState(ctx, t.Parent.ID, "keeping the rest of a fan-out of "+t.Parent.Key.String(), state.TaskRow(t, w.Now()), condition, c)
	if err != nil && awscall.Classify(err) == awscall.Condition {
		return nil
	}
	if err == nil {
		w.Counters.Tasks.Add(1)
	}
	return err
}

// WorkPiece writes the parent, as it is now, to the next children. A child that was
// written or filled since the task's position has that state, or a later one.
// It tells of each piece that is done. It returns ErrTaskMoved if another process has worked on the task.
func WorkPiece(ctx context.Context, h *host.Host, t state.Task, tell func(state.Task)) error {
	w := run{&host.Run{Host: h}}
	if t.Torn != nil {
		return t.Torn
	}
	if t.Parent.Former {
		return w.endTask(ctx, t)
	}
	at, err := w.parentAt(ctx, t.Parent)
	if err != nil {
		return err
	}
	if at != t.At {
		return w.endTask(ctx, t) // a later fan-out has begun, and looks at every child itself
	}
	items, err := w.Tables.ReadItems(ctx, "reading parent "+t.Parent.Key.String(), []change.Key{t.Parent.Key})
	if err != nil {
		return err
	}
	parent := table.Image(parentIn(w.Planner, t.Parent.Binding, t.Parent.Key, items))
	pw := parentWrite{
		b: t.Parent.Binding, parent: t.Parent.Key, version: t.At.Rederived(1), since: t.At, values: Of(t.Parent.Rule).Given(parent), refill: t.Refill,
	}
	referring, next, err := w.writeChildren(ctx, pw, t.Cursor, w.FanOutMax)
	if table.Refusal(err) != "" {
		return errors.Join(w.ParkRefused(ctx, t.Parent.Binding, t.Parent.Key, err), w.endTask(ctx, t))
	}
	if err != nil {
		return err
	}
	t.Referring, t.Children, t.Cursor = t.Referring+referring, t.Children+w.FanOutMax, next
	tell(t)
	if len(next) > 0 {
		return w.saveTask(ctx, t)
	}
	if parent == nil && t.Referring == 0 {
		if err := w.retireParent(ctx, t.Parent, t.At); err != nil {
			return err
		}
	}
	return w.endTask(ctx, t)
}

func (w run) saveTask(ctx context.Context, t state.Task) error {
	c := table.NewExpression()
	set := c.Format("SET %n = %v, %n = %v", "cursor", &ddb.AttributeValueMemberM{Value: t.Cursor}, "children", table.Number(int64(t.Children)))
	set += c.Format(", %n = %v, %n = %v", "referring", table.Number(int64(t.Referring)), "changes", table.Number(t.Changes+1))
	doing := "saving the place of a fan-out of " + t.Parent.Key.String()
	ok, err := w.Tables.UpdateState(ctx, t.Parent.ID, doing, state.TaskKey(t), set, state.TaskIs(c, t), c)
	if err == nil && !ok {
		return ErrTaskMoved
	}
	return err
}

// endTask deletes a task, unless it has moved.
func (w run) endTask(ctx context.Context, t state.Task) error {
	c := table.NewExpression()
	return w.Tables.DeleteState(ctx, t.Parent.ID, "ending a fan-out of "+t.Parent.Key.String(), state.TaskKey(t), state.TaskIs(c, t), c)
}
