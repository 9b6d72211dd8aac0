package projections

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/dynamill/dynamill/internal/pace"
	"github.com/dynamill/dynamill/internal/projections/inspect"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/registry"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// fanOutMaxDefault is how many children a fan-out writes before the rest becomes a task, and a task between two saved places.
const fanOutMaxDefault = 1000

// rangesMinDefault: the children behind so many are cut into ranges, each a quarter as large, which all workers take side by side.
const rangesMinDefault = 10_000

// heldPause is how long a worker waits if every task is held, or if its own work waits for the budget.
const heldPause = time.Second

// displayEveryMax bounds how long a roll-up waits that another process has put off, if its clock is right.
const displayEveryMax = time.Minute

// listedAgain: a worker works off a piece of this part of the tasks, then lists them again, as others have moved.
const listedAgain = 4

// rollupsWait is how long a worker works off pieces before it looks again for roll-ups that are due.
const rollupsWait = 2 * time.Second

// workPiece does the next piece of a task, or ends a task whose rule is not in force. It updates the task's number of children in all, the
// tasks of the same listing.
func (e *Engine) workPiece(ctx context.Context, t state.Task, all []state.Task) error {
	if t.Torn != nil {
		return t.Torn
	}
	postponer, postpones := t.Parent.Rule.Kind.(host.Postponer)
	if t.Parent.Former || !postpones {
		return e.host.EndTask(ctx, t)
	}
	worker := e.background(fanOuts).host
	return e.host.HoldTask(ctx, t, func(ctx context.Context, t state.Task) error {
		return postponer.WorkPiece(ctx, worker, t, func(t state.Task) {
			for i := range all {
				if all[i].Row == t.Row {
					all[i].Children = t.Children
				}
			}
			e.taskProgress(TaskProgress{Rule: t.Parent.Rule.Name, Parent: t.Parent.Key, Children: t.LookedAt(all)})
		})
	})
}

// isDue reports whether a worker may begin a piece: the rule does not await seeding, and children are left in the task's own part, or all
// its ranges have ended.
func isDue(t state.Task, all []state.Task) bool {
	if awaitsSeeding(t) {
		return false
	}
	return !t.Done || !slices.ContainsFunc(all, func(o state.Task) bool { return o.Range > 0 && o.IsOfFanOut(t) })
}

// awaitsSeeding reports whether a task must wait until its rule is live. Until then, a parent that is known by a unique value may be there
// although no locator tells: what is deleted for its absence cannot be put back.
func awaitsSeeding(t state.Task) bool {
	r := t.Parent.Rule
	return !t.Parent.Former && r.ByUnique && r.Deletes() && !t.Parent.Live.Load()
}

// TasksFound rises whenever WorkTasks or LookForTasks finds a task: if it stays the same during a call, no worker has written to a child
// meanwhile.
func (e *Engine) TasksFound() int64 { return e.tasksFound.Load() }

// rollUpDue does a roll-up that was put off, or drops one for which no rule in force asks.
func (e *Engine) rollUpDue(ctx context.Context, d state.DueRollup) error {
	if d.Group.Former {
		return e.host.DropRollup(ctx, d)
	}
	if !d.Group.Live.Load() {
		return host.ErrTaskMoved // this process does not know yet that the rule is live
	}
	return e.host.DoRollup(ctx, d, func(ctx context.Context) error {
		// Before the row is deleted, which is all that tells of this roll-up: it is done again if rules went live meanwhile.
		return e.registry.Under(ctx, func() error {
			pl := &plan.Changes{}
			pl.Rollups.Put(d.Group, &plan.Rollup{Asked: true})
			w := &application{Engine: e, Run: &host.Run{Host: e.host, Suffix: e.suffix}}
			w.rollUp(ctx, pl)
			return w.Err
		})
	})
}

// workRollups does the roll-ups that were put off and are due, side by side. It returns how many it did, and how long the next one may
// wait; 0: none is left. A roll-up that fails holds up no other one.
func (e *Engine) workRollups(ctx context.Context, all []state.DueRollup, failed map[table.Key]error) (done int, pause time.Duration,
	err error) {
	wait := func(d time.Duration) {
		if d = min(max(d, time.Millisecond), heldPause); pause == 0 || d < pause {
			pause = d
		}
	}
	var due []state.DueRollup
	for _, d := range all {
		now := e.host.Now()
		switch early := max(d.Due.Sub(now), e.host.DebounceLeft(d.Group)); {
		case failed[state.DueRollupKey(d.Group)] != nil:
		case early > 0 && early <= max(e.host.PeriodOf(d.Group), displayEveryMax): // of a clock that is far ahead, it is due
			wait(early)
		case d.IsHeld(now):
			wait(heldPause)
		default:
			due = append(due, d)
		}
	}
	if len(due) == 0 {
		return 0, pause, nil
	}
	errs := e.tables.Every(ctx, len(due), func(ctx context.Context, i int) error { return e.rollUpDue(ctx, due[i]) })
	for i, each := range errs {
		switch g := due[i].Group; {
		case each == nil:
			done++
		case errors.Is(each, registry.ErrEpochMoved):
			err = each
		case errors.Is(each, host.ErrTaskMoved):
			wait(heldPause)
		case ctx.Err() == nil:
			failed[state.DueRollupKey(g)] = fmt.Errorf("doing the roll-up of %s: %w", g.Group, each)
		}
	}
	return done, pause, cmp.Or(err, ctx.Err())
}

// Worked is what WorkTasks did.
type Worked struct {
	Pieces  int // of tasks, and roll-ups that were put off
	Waiting int // tasks that are left until their rule is seeded
}

// LookForTasks raises TasksFound if a task is left, be it another worker's.
func (e *Engine) LookForTasks(ctx context.Context) error {
	all, rollups, err := host.ReadTasks(ctx, e.tables.Reader, e.planner)
	if len(all)+len(rollups) > 0 {
		e.tasksFound.Add(1)
	}
	return err
}

// WorkTasks works off what large fan-outs have left, piece by piece, and roll-ups that were put off. It returns how many of these it did.
// It waits for roll-ups that are not due yet, unless Config.DueOnly is set, and for other workers that hold all tasks that are left. It may
// be stopped at any time and run in several processes: another call takes up what a crash leaves, after state.TaskTerm. A task that fails
// holds up no other one. The error says which failed; the next call tries them again.
func (e *Engine) WorkTasks(ctx context.Context) (did Worked, err error) {
	if e.Folds() { // a process that no record reaches must learn that rules are to be counted anew
		if err := e.registry.Under(ctx, func() error { return nil }); err != nil {
			return did, err
		}
	}
	failed := map[table.Key]error{}
	ended := func(err error) error { return errors.Join(append(slices.Collect(maps.Values(failed)), err)...) }
	for turn := e.suffix; ; turn++ { // not every worker at the same task
		all, rollups, err := host.ReadTasks(ctx, e.tables.Reader, e.planner)
		if err != nil {
			return did, ended(err)
		}
		rolledUp, pause, err := e.workRollups(ctx, rollups, failed)
		if did.Pieces += rolledUp; err != nil {
			return did, ended(err)
		}
		if rolledUp > 0 || pause > 0 {
			e.tasksFound.Add(1)
		}
		if slices.ContainsFunc(all, awaitsSeeding) { // another process may have seeded it
			if err := e.registry.Under(ctx, func() error { return nil }); err != nil {
				return did, ended(err)
			}
		}
		did.Waiting = len(slices.DeleteFunc(slices.Clone(all), func(t state.Task) bool { return !awaitsSeeding(t) }))
		due := slices.DeleteFunc(slices.Clone(all), func(t state.Task) bool { return failed[t.Row] != nil || !isDue(t, all) })
		if len(due) == 0 {
			e.taskProgress(TaskProgress{})
		}
		switch {
		case len(due) > 0:
		case len(failed) > 0: // displays that change all the time must not keep the caller from trying these again
			return did, ended(nil)
		case rolledUp > 0 && !e.dueOnly:
			continue // they may have been put off again meanwhile
		case pause == 0 || e.dueOnly:
			return did, nil
		default:
			if err := pace.Sleep(ctx, pause); err != nil {
				return did, ended(err)
			}
			continue
		}
		e.tasksFound.Add(1)
		free := slices.DeleteFunc(due, func(t state.Task) bool { return t.IsHeld(e.host.Now()) })
		first, moved, began := turn%max(1, len(free)), 0, e.host.Now()
		some := (len(free) + listedAgain - 1) / listedAgain
		for i := range some {
			if i > 0 && e.host.Now().Sub(began) >= rollupsWait {
				break
			}
			t := free[(first+i)%len(free)]
			switch err := e.registry.Under(ctx, func() error { return e.workPiece(ctx, t, all) }); {
			case err == nil:
				did.Pieces++
				e.host.Counters.TaskPieces.Add(1)
			case errors.Is(err, host.ErrTaskMoved):
				moved++
			case ctx.Err() != nil || errors.Is(err, registry.ErrEpochMoved):
				return did, ended(err)
			default:
				failed[t.Row] = fmt.Errorf("working off the fan-out of %s: %w", t.Parent.Key, err)
			}
		}
		if moved == some || e.host.Waits(fanOuts) {
			if err := pace.Sleep(ctx, heldPause); err != nil {
				return did, ended(err)
			}
		}
	}
}

// Unfinished reads what is parked and which tasks are left.
func (e *Engine) Unfinished(ctx context.Context) (found Unfinished, err error) {
	if found.Parked, err = e.ParkedCodes(ctx); err != nil {
		return found, err
	}
	tasks, err := inspect.Tasks(ctx, e.tables.Reader, e.planner)
	found.Tasks = len(tasks)
	for _, t := range tasks {
		if !t.Since.IsZero() && (found.OldestTask.IsZero() || t.Since.Before(found.OldestTask)) {
			found.OldestTask = t.Since
		}
	}
	return found, err
}
