package host

import (
	"context"
	"errors"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/pace"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

const (
	renewalsPerTerm = 3               // of a task that a worker holds: two of them may fail
	releaseTime     = 2 * time.Second // bounds the release of a task when the work has failed or was stopped
)

// ErrTaskMoved says that another process has worked on a task since it was read.
var ErrTaskMoved = errors.New("another process works on this task")

// HoldTask takes a task for one piece of work. The work saves or ends the task, which releases it, and so does an error. If another
// worker was faster, it returns ErrTaskMoved. If wrong clocks make two workers work on one task, the place saved first counts.
func (h *Host) HoldTask(ctx context.Context, t state.Task, work func(context.Context, state.Task) error) error {
	c := table.NewExpression()
	if err := h.updateTask(ctx, "taking", t, c.Format("SET %n = %v", "until", h.taskUntil()), state.TaskIsHeldAs(c, t), c); err != nil {
		return err
	}
	renewing, stop := context.WithCancel(ctx)
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		h.renewTask(renewing, t)
	}()
	err := work(ctx, t)
	stop()
	<-renewed
	if err != nil && !errors.Is(err, ErrTaskMoved) {
		releasing, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
		defer cancel()
		// The task may have any place by now. If it is not released, its term ends.
		c := table.NewExpression()
		_ = h.updateTask(releasing, "releasing", t, c.Format("REMOVE %n", "until"), state.TaskIsOfFanOut(c, t), c)
	}
	return err
}

// renewTask holds a task until ctx ends. A worker that has lost the task learns it when it saves the task.
func (h *Host) renewTask(ctx context.Context, t state.Task) {
	for pace.Sleep(ctx, state.TaskTerm/renewalsPerTerm) == nil {
		c := table.NewExpression()
		_ = h.updateTask(ctx, "holding", t, c.Format("SET %n = %v", "until", h.taskUntil()), state.TaskIsOfFanOut(c, t), c)
	}
}

func (h *Host) taskUntil() ddb.AttributeValue {
	return table.Number(h.Now().Add(state.TaskTerm).Unix())
}

// SaveTask saves the place of a task, and releases it.
func (h *Host) SaveTask(ctx context.Context, t state.Task) error {
	c := table.NewExpression()
	return h.saveTask(ctx, t, c.Format("REMOVE %n", "until"), c)
}

// SavePlace saves the place of a task, and holds on to it.
func (h *Host) SavePlace(ctx context.Context, t *state.Task) error {
	c := table.NewExpression()
	err := h.saveTask(ctx, *t, "", c)
	t.Changes++
	return err
}

func (h *Host) saveTask(ctx context.Context, t state.Task, further string, c *table.Expression) error {
	set := c.Format("SET %n = %v, %n = %v", "cursor", &ddb.AttributeValueMemberM{Value: t.Cursor}, "children", table.Number(int64(t.Children)))
	set += c.Format(", %n = %v, %n = %v", "referring", table.Number(int64(t.Referring)), "changes", table.Number(t.Changes+1))
	set += c.Format(", %n = %v ", "done", &ddb.AttributeValueMemberBOOL{Value: t.Done})
	return h.updateTask(ctx, "saving the place of", t, set+further, state.TaskIs(c, t), c)
}

// updateTask updates a task on a condition. It returns ErrTaskMoved if the task does not meet it: another worker was faster.
func (h *Host) updateTask(ctx context.Context, doing string, t state.Task, update, condition string, c *table.Expression) error {
	doing += " a fan-out of " + t.Parent.Key.String()
	ok, err := h.Tables.UpdateState(ctx, t.Parent.ID, doing, state.TaskKey(t), update, condition, c)
	if err == nil && !ok {
		return ErrTaskMoved
	}
	return err
}

// EndTask deletes a task, unless it has moved.
func (h *Host) EndTask(ctx context.Context, t state.Task) error {
	c := table.NewExpression()
	return h.Tables.DeleteState(ctx, t.Parent.ID, "ending a fan-out of "+t.Parent.Key.String(), state.TaskKey(t), state.TaskIs(c, t), c)
}

// CutTask cuts the next children, up to the key end, off a task, as a range, in one write: every child is the range's or the task's.
func (h *Host) CutTask(ctx context.Context, t state.Task, end table.Row, size int) (state.Task, error) {
	part := state.Task{Parent: t.Parent, At: t.At, Since: t.Since, Range: t.Ranges + 1, Cursor: t.Cursor, End: end, Size: size}
	c := table.NewExpression()
	set := c.Format("SET %n = %v, %n = %v", "cursor", &ddb.AttributeValueMemberM{Value: end}, "ranges", table.Number(int64(part.Range)))
	set += c.Format(", %n = %v, %n = %v", "changes", table.Number(t.Changes+1), "until", h.taskUntil())
	err := h.transactTask(ctx, "cutting a range off", t, []ddb.TransactWriteItem{
		h.Tables.UpdatePart(state.TaskKey(t), set, state.TaskIs(c, t), c),
		h.Tables.PutPart(state.TaskRow(part, h.Now()), "", table.NewExpression()),
	})
	t.Cursor, t.Ranges, t.Changes = end, part.Range, t.Changes+1
	return t, err
}

// EndRange deletes a range and adds what it has found to the fan-out's own task, together: each range counts once. If that task is gone, or
// of another fan-out by now, it only deletes the range.
func (h *Host) EndRange(ctx context.Context, t state.Task) error {
	own := state.Task{Parent: t.Parent}
	deletion, c := table.NewExpression(), table.NewExpression()
	add := c.Format("ADD %n %v, %n %v", "rangesEnded", table.Number(1), "rangesChildren", table.Number(int64(t.Children)))
	add += c.Format(", %n %v", "rangesReferring", table.Number(int64(t.Referring)))
	err := h.transactTask(ctx, "ending a range of", t, []ddb.TransactWriteItem{
		h.Tables.DeletePart(state.TaskKey(t), state.TaskIs(deletion, t), deletion),
		h.Tables.UpdatePart(state.TaskKey(own), add, state.TaskIsOfFanOut(c, t), c),
	})
	if !errors.Is(err, ErrTaskMoved) {
		return err
	}
	row, readErr := h.Tables.GetState(ctx, "reading a fan-out of "+t.Parent.Key.String(), state.TaskKey(own))
	if found, known := state.ReadTask(h.Tables.Reader, h.Planner, row); readErr != nil || known && found.IsOfFanOut(t) {
		return errors.Join(err, readErr)
	}
	return h.EndTask(ctx, t)
}

// transactTask changes two tasks together. It returns ErrTaskMoved if another worker has changed one of them since.
func (h *Host) transactTask(ctx context.Context, doing string, t state.Task, parts []ddb.TransactWriteItem) error {
	err := h.Tables.Transact(ctx, doing+" a fan-out of "+t.Parent.Key.String(), []string{t.Parent.ID}, parts)
	if table.LostRace(err) {
		return ErrTaskMoved
	}
	return err
}

// ReadTasks reads the tasks of the rules that a planner knows, former ones among them, and the roll-ups that workers have put off.
func ReadTasks(ctx context.Context, rows *table.Reader, p *plan.Planner) (tasks []state.Task, rollups []state.DueRollup, err error) {
	err = rows.EachRow(ctx, "listing tasks", state.TasksPartition, func(r table.Row) {
		if t, known := state.ReadTask(rows, p, r); known {
			tasks = append(tasks, t)
		} else if d, known := state.ReadDueRollup(p, r); known {
			rollups = append(rollups, d)
		}
	})
	return tasks, rollups, err
}
