package projections

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/registry"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// fanOutMaxDefault is how many children a fan-out writes before the rest becomes a
// task, and how many a task writes between two places of its cursor: what a crash
// does again.
const fanOutMaxDefault = 1000

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

// workPiece works off the next piece of a task. A task of which no rule in force asks for anything ends.
func (e *Engine) workPiece(ctx context.Context, t state.Task) error {
	if t.Torn != nil {
		return t.Torn
	}
	postponer, postpones := t.Parent.Rule.Kind.(host.Postponer)
	if t.Parent.Former || !postpones {
		return e.host.EndTask(ctx, t)
	}
	return postponer.WorkPiece(ctx, e.host, t, func(t state.Task) {
		if e.taskProgress != nil {
			e.taskProgress(TaskProgress{Rule: t.Parent.Rule.Name, Parent: t.Parent.Key, Children: t.Children})
		}
	})
}

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
			case errors.Is(err, host.ErrTaskMoved):
			case ctx.Err() != nil || errors.Is(err, registry.ErrEpochMoved):
				return pieces, ended(err)
			default:
				failed[t.Row] = fmt.Errorf("working off the fan-out of %s: %w", t.Parent.Key, err)
			}
		}
	}
}
