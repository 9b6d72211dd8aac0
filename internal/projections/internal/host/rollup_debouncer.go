package host

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// A display that many records change is written at most once in DisplayEvery by one process. A worker that rolled the group up a moment
// ago puts the next roll-up off: it leaves a row in the state table, and its records are done. The row is durable, so any worker does
// the roll-up once it is due. Clocks say only when (docs/adr/0035-hot-displays-wait.md).
//
// A worker reads the row after its moves. If the row is there and no worker has begun the roll-up, the one that will begin it reads the
// group after that: nothing is to be written. Otherwise the worker puts it off once more, by which the row stays: the worker that has
// begun deletes the row only if no other has put the roll-up off since.

// deferralsMax bounds how many groups a process remembers to have rolled up.
const deferralsMax = 10_000

// rollupDebouncer are the groups that a process rolled up a moment ago. They are safe for concurrent use.
type rollupDebouncer struct {
	mu       sync.Mutex
	rolledUp map[plan.GroupRef]rolledUp
}

// rolledUp is when a roll-up was begun or done, and whether the next one was put off since.
type rolledUp struct {
	at     time.Time
	putOff bool
}

// note notes that a group was rolled up: by a batch, which leaves what was put off to be done, or by the worker that does that.
func (d *rollupDebouncer) note(g plan.GroupRef, now time.Time, byBatch bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.set(g, rolledUp{now, byBatch && d.rolledUp[g].putOff})
}

func (d *rollupDebouncer) set(g plan.GroupRef, r rolledUp) {
	if d.rolledUp == nil || len(d.rolledUp) >= deferralsMax {
		d.rolledUp = map[plan.GroupRef]rolledUp{}
	}
	d.rolledUp[g] = r
}

// take decides whether a batch may roll a group up now. If this process rolled it up less than every ago, take returns true, and the time
// from which the next roll-up is due. If a roll-up was put off since, the wait is twice as long: the worker that does put-off roll-ups
// comes first. If the batch that may roll up fails, its records come again and are put off.
func (d *rollupDebouncer) take(g plan.GroupRef, now time.Time, every time.Duration) (due time.Time, lately bool) {
	if every <= 0 {
		return now, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	last, ok := d.rolledUp[g]
	due = last.at.Add(every)
	until := due
	if last.putOff {
		until = due.Add(every)
	}
	if ok && !now.Before(last.at) && now.Before(until) {
		d.set(g, rolledUp{last.at, true})
		if !now.Before(due) { // a worker may be at it now
			due = now.Add(every)
		}
		return due, true
	}
	d.set(g, rolledUp{at: now})
	return now, false
}

// left is how long a group is not to be rolled up again.
func (d *rollupDebouncer) left(g plan.GroupRef, now time.Time, every time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	last, ok := d.rolledUp[g]
	if !ok || now.Before(last.at) {
		return 0
	}
	return last.at.Add(every).Sub(now)
}

// DebounceLeft is how long a roll-up that was put off is to wait, as this process rolled the group up a moment ago; 0 or less: not at all.
// A batch may have begun with the group long before it wrote the display.
func (h *Host) DebounceLeft(g plan.GroupRef) time.Duration {
	return h.deferrals.left(g, h.Now(), h.PeriodOf(g))
}

// NoteRolledUp notes that this process has rolled a group up, for a batch or as what was put off, if displays of its rule may wait.
func (h *Host) NoteRolledUp(g plan.GroupRef, byBatch bool) {
	if _, waits := g.Rule.Kind.(Debouncer); waits && h.PeriodOf(g) > 0 {
		h.deferrals.note(g, h.Now(), byBatch)
	}
}

// Debouncer is a Grouper whose displays may wait.
type Debouncer interface {
	Grouper
	// DisplayEvery is the least time between two writes of a display of the rule; 0: that of the engine.
	DisplayEvery(b *plan.Binding) time.Duration
}

// PeriodOf is the least time between two writes of a display.
func (h *Host) PeriodOf(g plan.GroupRef) time.Duration {
	if family, ok := g.Rule.Kind.(Debouncer); ok {
		return cmp.Or(family.DisplayEvery(g.Binding), h.DisplayEvery)
	}
	return h.DisplayEvery
}

// PutOff puts off the roll-ups of those of the groups that were rolled up a moment ago, and returns the others. A roll-up with more to do
// than to show what has changed is not put off. For each of those that wait, errs says whether that is noted.
func (h *Host) PutOff(ctx context.Context, groups []plan.GroupRef, pl *plan.Changes) (left, waiting []plan.GroupRef, errs []error) {
	var keys []table.Key
	due := map[plan.GroupRef]time.Time{}
	for _, g := range groups {
		if _, ok := g.Rule.Kind.(Debouncer); ok && g.Live.Load() && pl.Rollups.Of(g).MayWait() {
			if at, lately := h.deferrals.take(g, h.Now(), h.PeriodOf(g)); lately {
				due[g], waiting, keys = at, append(waiting, g), append(keys, state.DueRollupKey(g))
				continue
			}
		}
		left = append(left, g)
	}
	if len(waiting) == 0 {
		return groups, nil, nil
	}
	rows, err := h.Tables.ReadState(ctx, "reading roll-ups that were put off", keys)
	errs = h.Tables.Every(ctx, len(waiting), func(ctx context.Context, i int) error {
		if err != nil {
			return err
		}
		g := waiting[i]
		d, known := state.ReadDueRollup(h.Planner, rows[keys[i]])
		if known && !d.IsBegun {
			return nil // the worker that will begin it reads what has changed
		}
		c := table.NewExpression()
		_, err := h.Tables.UpdateState(ctx, g.ID, "putting off the roll-up of "+g.Group, keys[i], state.PutOffRollup(c, g, due[g]), "", c)
		return err
	})
	h.TaskKept()
	return left, waiting, errs
}

// DoRollup takes a roll-up that was put off, does it, and deletes its row unless it was put off again. It returns ErrTaskMoved if
// another worker was faster.
func (h *Host) DoRollup(ctx context.Context, d state.DueRollup, do func(context.Context) error) error {
	key, c := state.DueRollupKey(d.Group), table.NewExpression()
	update, condition := state.TakeRollup(c, &d, h.Now())
	taken, err := h.Tables.UpdateState(ctx, d.Group.ID, "taking the roll-up of "+d.Group.Group, key, update, condition, c)
	if err != nil {
		return err
	}
	if !taken {
		return ErrTaskMoved
	}
	if err := do(ctx); err != nil {
		return err // another worker may take it when the term is over
	}
	deletion := table.NewExpression()
	unmoved := state.RollupNotPutOffAgain(deletion, d)
	ended, err := h.Tables.DeleteStateIf(ctx, d.Group.ID, "ending the roll-up of "+d.Group.Group, key, unmoved, deletion)
	if ended || err != nil {
		return err
	}
	// It was put off again: any worker may take it once it is due.
	release := table.NewExpression()
	held := state.RollupHeldByThisWorker(release, d)
	_, err = h.Tables.UpdateState(ctx, d.Group.ID, "releasing the roll-up of "+d.Group.Group, key, state.ReleaseRollup(release), held, release)
	return err
}

// DropRollup deletes the row of a roll-up for which no rule in force asks.
func (h *Host) DropRollup(ctx context.Context, d state.DueRollup) error {
	key := state.DueRollupKey(d.Group)
	return h.Tables.DeleteState(ctx, d.Group.ID, "dropping the roll-up of "+d.Group.Group, key, "", table.NewExpression())
}
