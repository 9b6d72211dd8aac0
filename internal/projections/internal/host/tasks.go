package host

import (
	"context"
	"errors"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// ErrTaskMoved says that another process has worked on a task since it was read.
var ErrTaskMoved = errors.New("another process works on this task")

// SaveTask saves the place of a task. It returns ErrTaskMoved if another process has worked on the task.
func (h *Host) SaveTask(ctx context.Context, t state.Task) error {
	c := table.NewExpression()
	set := c.Format("SET %n = %v, %n = %v", "cursor", &ddb.AttributeValueMemberM{Value: t.Cursor}, "children", table.Number(int64(t.Children)))
	set += c.Format(", %n = %v, %n = %v", "referring", table.Number(int64(t.Referring)), "changes", table.Number(t.Changes+1))
	doing := "saving the place of a fan-out of " + t.Parent.Key.String()
	ok, err := h.Tables.UpdateState(ctx, t.Parent.ID, doing, state.TaskKey(t), set, state.TaskIs(c, t), c)
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
