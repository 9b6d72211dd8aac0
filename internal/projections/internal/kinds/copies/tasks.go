package copies

import (
	"context"
	"errors"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

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
	condition := state.SeenBefore(c, t.Parent.Binding, below, t.At)
	doing := "keeping the rest of a fan-out of " + t.Parent.Key.String()
	kept, err := w.Tables.PutState(ctx, t.Parent.ID, doing, state.TaskRow(t, w.Now()), condition, c)
	if kept {
		w.Counters.Tasks.Add(1)
	}
	return err
}

// WorkPiece implements host.Postponer: it writes the parent, as it is now, to the next children. A child
// that was written or filled since the task's position has that state, or a later one.
func (kind) WorkPiece(ctx context.Context, h *host.Host, t state.Task, tell func(state.Task)) error {
	w := run{&host.Run{Host: h}}
	at, err := w.parentAt(ctx, t.Parent)
	if err != nil {
		return err
	}
	if at != t.At {
		return w.EndTask(ctx, t) // a later fan-out has begun, and looks at every child itself
	}
	items, err := w.Tables.ReadItems(ctx, "reading parent "+t.Parent.Key.String(), []change.Key{t.Parent.Key})
	if err != nil {
		return err
	}
	parent := table.Image(parentIn(w.Planner, t.Parent.Binding, t.Parent.Key, items))
	pw := parentWrite{
		b: t.Parent.Binding, parent: t.Parent.Key, version: t.At.Rederived(1), since: t.At, values: Of(t.Parent.Rule).Given(parent),
		refill: t.Refill,
	}
	referring, next, err := w.writeChildren(ctx, pw, t.Cursor, w.FanOutMax)
	if table.Refusal(err) != "" {
		return errors.Join(w.ParkRefused(ctx, t.Parent.Binding, t.Parent.Key, err), w.EndTask(ctx, t))
	}
	if err != nil {
		return err
	}
	t.Referring, t.Children, t.Cursor = t.Referring+referring, t.Children+w.FanOutMax, next
	tell(t)
	if len(next) > 0 {
		return w.SaveTask(ctx, t)
	}
	if parent == nil && t.Referring == 0 {
		if err := w.retireParent(ctx, t.Parent, t.At); err != nil {
			return err
		}
	}
	return w.EndTask(ctx, t)
}
