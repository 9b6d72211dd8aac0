package projections

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

const children = 23

// crowd is a user with more comments than a fan-out writes at once, and what it takes to rename the user.
func crowd(t *testing.T) (w *world, open func(table.Client) *Engine) {
	w = newWorld(t, socialRules)
	open = func(c table.Client) *Engine {
		e, err := Open(w.ctx, Config{Client: c, Table: "app", Rules: loadRules(t, socialRules), FanOutMax: 5})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	if err := open(w.sim).Seed(w.ctx, nil); err != nil {
		t.Fatal(err)
	}
	w.rename("Ann")
	for i := range children {
		w.put(comment(fmt.Sprintf("c%02d", i), change.Item{"userId": s("u1")}))
	}
	return w, open
}

func (w *world) rename(name string) {
	w.put(change.Item{"pk": s("USER#u1"), "sk": s("PROFILE"), "name": s(name)})
}

// named counts the comments that carry a name.
func (w *world) named(name string) (n int) {
	for i := range children {
		if w.get(change.Key{Partition: "POST#p1", Sort: fmt.Sprintf("COMMENT#c%02d", i)}).Lookup("userName").Equal(s(name)) {
			n++
		}
	}
	return n
}

func (w *world) expectTasks(e *Engine, n int) {
	w.t.Helper()
	if tasks, _, err := host.ReadTasks(w.ctx, e.tables.Reader, e.planner); err != nil || len(tasks) != n {
		w.t.Errorf("tasks %v, %v; want %d", tasks, err, n)
	}
}

// hurries has each page of a task take so long that its piece ends.
func hurries(e *Engine) {
	var passed atomic.Int64
	e.host.Now = func() time.Time { return time.Now().Add(time.Duration(passed.Add(2)) * time.Second) }
}

func TestALargeFanOutHoldsItsBatchNoLongerThanItsBound(t *testing.T) {
	w, open := crowd(t)
	e := open(w.sim)
	hurries(e)
	from := w.drain(e, 0)
	w.rename("Bob")
	if done, err := e.Process(w.ctx, w.records()[from:]); done != 1 || err != nil {
		t.Fatal(done, err)
	}
	if n := w.named("Bob"); n != 5 {
		t.Errorf("%d comments are renamed with the record, want 5", n)
	}
	w.expectTasks(e, 1)
	if did, err := e.WorkTasks(w.ctx); err != nil || did.Pieces != 4 {
		t.Errorf("%d pieces, %v; want 4", did.Pieces, err)
	}
	w.expectTasks(e, 0)
	w.drain(e, from)
	w.expectNoDrift()
}

func TestFanOutWithoutABoundLeavesNoTask(t *testing.T) {
	w, _ := crowd(t)
	e, err := Open(w.ctx, Config{Client: w.sim, Table: "app", Rules: loadRules(t, socialRules), FanOutMax: math.MaxInt})
	if err != nil {
		t.Fatal(err)
	}
	from := w.drain(e, 0)
	w.rename("Bob")
	w.drain(e, from)
	w.expectTasks(e, 0)
	w.expectNoDrift()
}

func TestTaskTellsItsProgressAfterEachPiece(t *testing.T) {
	w, open := crowd(t)
	e := open(w.sim)
	var told []string
	e.taskProgress = func(p TaskProgress) { told = append(told, fmt.Sprintf("%s %s %d", p.Rule, p.Parent, p.Children)) }
	from := w.drain(e, 0)
	w.rename("Bob")
	w.drain(e, from)
	if _, err := e.WorkTasks(w.ctx); err != nil {
		t.Fatal(err)
	}
	want := []string{"comment-author USER#u1/PROFILE 10", "comment-author USER#u1/PROFILE 15", "comment-author USER#u1/PROFILE 20",
		"comment-author USER#u1/PROFILE 23", "  0"}
	if !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

// TestATaskLosesNoChildToCrashes crashes at every call of the work in turn.
func TestATaskLosesNoChildToCrashes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, open := crowd(t)
		crashAtEveryCall(t, w, open)
	})
}

func crashAtEveryCall(t *testing.T, w *world, open func(table.Client) *Engine) {
	e := open(w.sim)
	from := w.drain(e, 0)
	w.rename("Bob")
	from = w.drain(e, from)
	for after := 0; ; after++ {
		var calls atomic.Int64
		f := &faulty{Client: w.sim, around: passAll}
		worker := open(f)
		f.around = func(_ string, pass func() error) error {
			if calls.Add(1) > int64(after) {
				return errCrash
			}
			return pass()
		}
		_, err := worker.WorkTasks(w.ctx)
		if err == nil {
			break
		}
		if !errors.Is(err, errCrash) {
			t.Fatal(err)
		}
	}
	w.expectTasks(e, 0)
	w.drain(e, from)
	w.expectNoDrift()
}

// TestALaterChangeOfTheParentTakesATasksPlace renames twice before the first is worked off, and redelivers the first.
func TestALaterChangeOfTheParentTakesATasksPlace(t *testing.T) {
	w, open := crowd(t)
	e := open(w.sim)
	from := w.drain(e, 0)
	w.rename("Bob")
	first := w.records()[from:]
	from = w.drain(e, from)
	w.rename("Cid")
	from = w.drain(e, from)
	if _, err := e.Process(w.ctx, first); err != nil { // once more
		t.Fatal(err)
	}
	w.expectTasks(e, 1)
	if _, err := e.WorkTasks(w.ctx); err != nil {
		t.Fatal(err)
	}
	if n := w.named("Cid"); n != children {
		t.Errorf("%d comments carry the last name, want %d", n, children)
	}
	w.drain(e, from)
	w.expectNoDrift()
}

// TestASleepingTaskTakesNoChildBack wakes a worker in the middle of a task when a later change is all written.
func TestASleepingTaskTakesNoChildBack(t *testing.T) {
	w, open := crowd(t)
	e := open(w.sim)
	from := w.drain(e, 0)
	w.rename("Bob")
	from = w.drain(e, from)
	f, slept := &faulty{Client: w.sim, around: passAll}, false
	sleeper := open(f)
	f.around = func(op string, pass func() error) error {
		if op == "Query" && !slept && w.named("Bob") > 5 {
			slept = true
			w.rename("Cid")
			from = w.drain(e, from)
			if _, err := e.WorkTasks(w.ctx); err != nil {
				t.Error(err)
			}
		}
		return pass()
	}
	if _, err := sleeper.WorkTasks(w.ctx); err != nil || !slept {
		t.Fatal(slept, err)
	}
	if n := w.named("Cid"); n != children {
		t.Errorf("%d comments carry the last name, want %d", n, children)
	}
	w.drain(e, from)
	w.expectNoDrift()
}

func TestTheRestOfADeletedParentsFanOutTakesItsNameOff(t *testing.T) {
	w, open := crowd(t)
	e := open(w.sim)
	from := w.drain(e, 0)
	w.delete(change.Key{Partition: "USER#u1", Sort: "PROFILE"})
	from = w.drain(e, from)
	if _, err := e.WorkTasks(w.ctx); err != nil {
		t.Fatal(err)
	}
	if n := w.named("[deleted]"); n != children {
		t.Errorf("%d comments say that their author is gone, want %d", n, children)
	}
	w.drain(e, from)
	w.expectNoDrift()
}
