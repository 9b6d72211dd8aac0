package children

import (
	"context"
	"errors"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// PutTask keeps what is left of a fan-out, unless it is kept already: then a
// record came again, and the task is further than the record. A refill goes back
// to where it was asked for again: what the children behind that place hold may
// have been spoiled since.
func (w Run) PutTask(ctx context.Context, t state.Task) error {
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
		w.TaskKept()
	}
	return err
}

// WorkPiece implements host.Postponer: it writes the parent, as it is now, to the next children. A child
// that was written or filled since the task's position has that state, or a later one.
func (Following[K]) WorkPiece(ctx context.Context, h *host.Host, t state.Task, tell func(state.Task)) error {
	w := Run{&host.Run{Host: h}}
	if ended, err := w.endEarlier(ctx, t); ended || err != nil {
		return err
	}
	if isCut, err := w.cut(ctx, t); err != nil || isCut {
		return err
	}
	parents, err := w.ReadParents(ctx, []plan.ItemRule{t.Parent})
	if err != nil {
		return err
	}
	parent := table.Image(parents[t.Parent])
	if t.Done {
		return w.endFanOut(ctx, t, parent)
	}
	span := Span{Parent: t.Parent.Key, End: t.End}
	do := w.refilling(t.Parent.Binding, span)
	if spreader, spreads := t.Parent.Family.(Spreader); spreads && !t.Refill {
		s := &Spreading{Binding: t.Parent.Binding, Span: span, Version: t.At.Rederived(1), Since: t.At, Given: parent}
		do = func(ctx context.Context, rows []Row) (int, error) { return spreader.Spread(ctx, w, s, rows) }
	}
	t, err = w.writePages(ctx, span, do, t, tell)
	if keepsDeletionMarks(t.Parent.Binding) && (table.Refusal(err) != "" || err == nil && len(t.Cursor) == 0) {
		// Spread leaves children if another worker has raised the mark meanwhile.
		if ended, err := w.endEarlier(ctx, t); ended || err != nil {
			return err
		}
	}
	if table.Refusal(err) != "" {
		return errors.Join(w.ParkRefused(ctx, t.Parent.Binding, t.Parent.Key, err), w.EndTask(ctx, t))
	}
	switch {
	case err != nil:
		return err
	case len(t.Cursor) > 0:
		return w.SaveTask(ctx, t)
	case t.Range > 0:
		return w.EndRange(ctx, t)
	case t.Ranges > 0:
		t.Done = true
		return w.SaveTask(ctx, t)
	}
	return w.endFanOut(ctx, t, parent)
}

// endEarlier ends a task that is out of date, and reports whether it is: the parent's row has another version, normally that of a later
// fan-out, which looks at every child itself. Copies that find parents by a unique value have no such version. A value that is marked
// again needs a task first: the worker that marked it may have crashed before it put one, and no record need come again.
func (w Run) endEarlier(ctx context.Context, t state.Task) (bool, error) {
	at, err := w.parentAt(ctx, t.Parent)
	family, marks := t.Parent.Family.(Marking)
	if err != nil || at == t.At || t.Parent.Rule.ByUnique && !marks {
		return false, err
	}
	if marks {
		if err := family.MarkedAgain(ctx, w, t.Parent); err != nil {
			return true, err
		}
	}
	return true, w.EndTask(ctx, t)
}

// pieceSpan is how long one piece of a task goes on. Then other workers may take the task, and a process that is stopped while it
// waits for the budget loses no more.
const pieceSpan = 2 * time.Second

// writePages writes to the children of a task, page by page, until its piece is over or the rest can be cut into ranges. It returns
// the task at the place that it has come to.
func (w Run) writePages(ctx context.Context, span Span, do write, t state.Task, tell func(state.Task)) (state.Task, error) {
	children, began, unsaved := pages{Run: w, b: t.Parent.Binding, span: span, place: t.Cursor}, w.Now(), 0
	uncut := !w.isLarge(t) // otherwise cut has left fewer children than a range takes
	defer children.close()
	for {
		n, end, err := w.BeginPiece(ctx, w.FanOutMax, unitsPerChild(t.Parent.Binding))
		if err != nil {
			return t, err
		}
		rows, err := children.take(ctx, n)
		referring := 0
		if err == nil {
			if w.Tables.Budget == nil {
				children.readAhead(ctx, n)
			}
			referring, err = do(ctx, rows)
		}
		if end(); err != nil {
			return t, err
		}
		t.Referring, t.Children, t.Cursor, unsaved = t.Referring+referring, t.Children+len(rows), children.place, unsaved+len(rows)
		if t.Range > 0 {
			t.Children = min(t.Children, t.Size)
		}
		if tell(t); len(t.Cursor) == 0 || uncut && w.isLarge(t) || w.Now().Sub(began) >= pieceSpan {
			return t, nil
		}
		if unsaved >= w.FanOutMax {
			if err := w.SavePlace(ctx, &t); err != nil {
				return t, err
			}
			unsaved = 0
		}
	}
}

// unitsPerChild is about how many write units one child takes: a transaction takes twice as many.
func unitsPerChild(b *plan.Binding) int {
	if keepsDeletionMarks(b) {
		return 2
	}
	return 1
}

// endFanOut ends a fan-out whose children were all looked at. It lets the position of a deleted parent
// expire, if none of them refers to it, be it in the task's own part or in a range.
func (w Run) endFanOut(ctx context.Context, t state.Task, parent change.Image) error {
	if t.Ranges > 0 { // a range may have ended since the task was read
		row, err := w.Tables.GetState(ctx, "reading a fan-out of "+t.Parent.Key.String(), t.Row)
		found, known := state.ReadTask(w.Tables.Reader, w.Planner, row)
		if err != nil || !known {
			return err
		}
		t.RangesEnded, t.RangesReferring = found.RangesEnded, found.RangesReferring
	}
	if parent == nil && !keepsDeletionMarks(t.Parent.Binding) && t.Referring+t.RangesReferring == 0 && t.RangesEnded == t.Ranges {
		if err := w.retireParent(ctx, t.Parent, t.At); err != nil {
			return err
		}
	}
	return w.EndTask(ctx, t)
}

// cut cuts the children behind a task's place into ranges, if the fan-out is that large, and leaves the last of them to the
// task. It reports whether it has cut off any.
func (w Run) cut(ctx context.Context, t state.Task) (bool, error) {
	if !w.isLarge(t) {
		return false, nil
	}
	size, before, began := max(1, w.RangesMin/rangeFraction), t.Ranges, w.Now()
	for {
		end, err := w.keyBehind(ctx, t, size)
		if err != nil {
			return false, err
		}
		if end == nil && t.Ranges == before {
			return false, nil
		}
		if end == nil || t.Ranges > before && w.Now().Sub(began) >= pieceSpan {
			return true, w.SaveTask(ctx, t)
		}
		_, done, err := w.BeginPiece(ctx, 1, cutUnits)
		if err != nil {
			return false, err
		}
		t, err = w.CutTask(ctx, t, end, size)
		if done(); err != nil {
			return false, err
		}
	}
}

// isLarge reports whether the children behind a task's place go to several workers.
func (w Run) isLarge(t state.Task) bool {
	return !t.Refill && t.Range == 0 && !t.Done && t.Children >= w.RangesMin && !keepsDeletionMarks(t.Parent.Binding)
}

// cutUnits is about how many write units a transaction takes that changes two tasks.
const cutUnits = 4

// rangeFraction: a range holds RangesMin/4 children. A rest of RangesMin gives work to four workers.
const rangeFraction = 4

// keyBehind returns the key of a later child of a task, so many behind its place; nil if fewer are left. It asks for
// keys alone, and its answer may be old: wherever a range ends, the next one begins.
func (w Run) keyBehind(ctx context.Context, t state.Task, children int) (table.Row, error) {
	in, ok := w.childrenQuery(table.NewExpression(), t.Parent.Binding, Span{Parent: t.Parent.Key})
	if !ok {
		return nil, nil
	}
	in.ConsistentRead, in.ExclusiveStartKey, in.Select = nil, t.Cursor, ddb.SelectCount
	for children > 0 {
		in.Limit = new(int32(children))
		out, err := w.Tables.Query(ctx, "looking for ranges of the children of "+t.Parent.Key.String(), in)
		if err != nil || len(out.LastEvaluatedKey) == 0 {
			return nil, err
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
		children -= int(out.Count)
	}
	return in.ExclusiveStartKey, nil
}
