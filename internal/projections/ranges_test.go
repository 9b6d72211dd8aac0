package projections

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/inspect"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// rangedCrowd is a crowd whose fan-outs are cut: 5 children are written with the record and 5 with the task's first piece,
// then come 6 ranges of 2 children, and 1 child is left.
func rangedCrowd(t *testing.T) (w *world, open func(table.Client) *Engine) {
	w, _ = crowd(t)
	return w, func(c table.Client) *Engine {
		e, err := Open(w.ctx, Config{Client: c, Table: "app", Rules: loadRules(t, socialRules), FanOutMax: 5, RangesMin: 8})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
}

// cutRenaming renames the user and works until the task is cut. It returns how many records are applied.
func (w *world) cutRenaming(e *Engine) (from int) {
	w.t.Helper()
	from = w.drain(e, 0)
	w.rename("Bob")
	from = w.drain(e, from)
	for range 2 {
		w.workRow(e, 0)
	}
	w.expectTasks(e, 7)
	return from
}

// workRow works off the next piece of the task of a range, or of the fan-out's own.
func (w *world) workRow(e *Engine, number int) {
	w.t.Helper()
	tasks, _, err := host.ReadTasks(w.ctx, e.tables.Reader, e.planner)
	i := slices.IndexFunc(tasks, func(t state.Task) bool { return t.Range == number })
	if err != nil || i < 0 {
		w.t.Fatal(tasks, err)
	}
	if err := e.workPiece(w.ctx, tasks[i], tasks); err != nil {
		w.t.Fatal(err)
	}
}

func TestLargeFanOutIsCutIntoRanges(t *testing.T) {
	w, open := rangedCrowd(t)
	e := open(w.sim)
	var told []int
	e.taskProgress = func(p TaskProgress) {
		if p.Rule != "" {
			told = append(told, p.Children)
		}
	}
	from := w.cutRenaming(e)
	if n := w.named("Bob"); n != 10 {
		t.Errorf("%d comments are renamed before the ranges, want 10", n)
	}
	w.workRow(e, 3)
	left, err := inspect.Tasks(w.ctx, e.tables.Reader, e.planner)
	if err != nil || len(left) != 1 || left[0].Children != 12 {
		t.Errorf("left: %+v, %v; want one fan-out that has looked at 12 children", left, err)
	}
	if did, err := e.WorkTasks(w.ctx); err != nil || did.Pieces != 7 { // 5 ranges, the rest and the end
		t.Errorf("%d pieces, %v; want 7", did.Pieces, err)
	}
	if !slices.IsSorted(told) || told[len(told)-1] != children {
		t.Errorf("told %d", told)
	}
	w.expectTasks(e, 0)
	w.drain(e, from)
	w.expectNoDrift()
}

// TestRestOfALargeFanOutIsOnePiece has three children left that are too few for a range.
func TestRestOfALargeFanOutIsOnePiece(t *testing.T) {
	w, _ := crowd(t)
	var counts atomic.Int64
	client := &faulty{Client: w.sim, around: passAll, before: func(_ string, in any) {
		if q, ok := in.(*dynamodb.QueryInput); ok && q.Select == ddb.SelectCount {
			counts.Add(1)
		}
	}}
	e, err := Open(w.ctx, Config{Client: client, Table: "app", Rules: loadRules(t, socialRules), FanOutMax: 1, RangesMin: 20})
	if err != nil {
		t.Fatal(err)
	}
	from := w.drain(e, 0)
	w.rename("Bob")
	from = w.drain(e, from)
	if did, err := e.WorkTasks(w.ctx); err != nil || did.Pieces != 2 || counts.Load() != 1 {
		t.Errorf("%d pieces that counted children %d times, %v; want 20 children, then the rest, and one count", did.Pieces, counts.Load(), err)
	}
	w.drain(e, from)
	w.expectNoDrift()
}

// TestRangesLoseNoChildToCrashes crashes at every call of the work in turn.
func TestRangesLoseNoChildToCrashes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, open := rangedCrowd(t)
		crashAtEveryCall(t, w, open)
	})
}

// TestWorkersTakeDifferentRanges lets a worker sleep in a range, and another one work off all others meanwhile. Then
// the sleeper's range is worked off too, and the sleeper wakes.
func TestWorkersTakeDifferentRanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, open := rangedCrowd(t)
		e := open(w.sim)
		from := w.cutRenaming(e)
		var asleep atomic.Bool
		slept, woken := make(chan struct{}), make(chan struct{})
		f := &faulty{Client: w.sim, around: passAll}
		sleeper := open(f)
		f.around = func(op string, pass func() error) error {
			if op == "UpdateItem" && asleep.CompareAndSwap(false, true) {
				err := pass() // it has taken a task
				close(slept)
				<-woken
				return err
			}
			return pass()
		}
		ended := make(chan error)
		go func() {
			_, err := sleeper.WorkTasks(w.ctx)
			ended <- err
		}()
		<-slept
		tasks, _, err := host.ReadTasks(w.ctx, e.tables.Reader, e.planner)
		held := slices.IndexFunc(tasks, func(t state.Task) bool { return t.IsHeld(e.host.Now()) })
		if err != nil || held < 0 {
			t.Fatal(tasks, err)
		}
		began := e.host.Now()
		if _, err := e.WorkTasks(w.ctx); err != nil {
			t.Fatal(err)
		}
		if waited := e.host.Now().Sub(began); waited < 19*time.Second || waited > 22*time.Second || w.named("Bob") != children {
			t.Errorf("%d comments are renamed after %s", w.named("Bob"), waited)
		}
		close(woken)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		w.expectTasks(e, 0)
		w.drain(e, from)
		w.expectNoDrift()
	})
}

// TestLaterChangeOfTheParentEndsRanges renames again when ranges of the first renaming are left. The second one cuts too,
// and its ranges take the rows of the first one's.
func TestLaterChangeOfTheParentEndsRanges(t *testing.T) {
	for _, deleted := range []bool{false, true} {
		t.Run(fmt.Sprint("deleted ", deleted), func(t *testing.T) {
			w, open := rangedCrowd(t)
			e := open(w.sim)
			from := w.cutRenaming(e)
			first := w.records()[:from]
			name := "Cid"
			if w.rename(name); deleted {
				w.delete(change.Key{Partition: "USER#u1", Sort: "PROFILE"})
				name = "[deleted]"
			}
			from = w.drain(e, from)
			w.workRow(e, 2)
			if _, err := e.Process(w.ctx, first); err != nil { // once more
				t.Fatal(err)
			}
			if _, err := e.WorkTasks(w.ctx); err != nil {
				t.Fatal(err)
			}
			if n := w.named(name); n != children {
				t.Errorf("%d comments carry the last name, want %d", n, children)
			}
			w.expectTasks(e, 0)
			w.drain(e, from)
			w.expectNoDrift()
		})
	}
}

// TestPositionExpiresOnlyIfNoRangeRefers deletes a user, whose comments are deleted before the ranges look for them: all
// of them, or all but one, which refers to the user in a range or in the task's own part.
func TestPositionExpiresOnlyIfNoRangeRefers(t *testing.T) {
	for _, stays := range []int{-1, 3, 14, 22} {
		t.Run(fmt.Sprint("but for ", stays), func(t *testing.T) {
			w, open := rangedCrowd(t)
			e := open(w.sim)
			from := w.drain(e, 0)
			w.delete(change.Key{Partition: "USER#u1", Sort: "PROFILE"})
			for i := range children {
				if i != stays {
					w.delete(change.Key{Partition: "POST#p1", Sort: fmt.Sprintf("COMMENT#c%02d", i)})
				}
			}
			if done, err := e.Process(w.ctx, w.records()[from:from+1]); done != 1 || err != nil {
				t.Fatal(done, err)
			}
			for range 2 {
				w.workRow(e, 0)
			}
			w.expectTasks(e, 7)
			if _, err := e.WorkTasks(w.ctx); err != nil {
				t.Fatal(err)
			}
			w.expectTasks(e, 0)
			rows := w.scan("app-dynamill")
			position := "parent/" + idOf("comment-author") + "/USER#u1/PROFILE" // that of a rule without children expires with the record
			i := slices.IndexFunc(rows, func(row change.Item) bool { return row["pk"].Text() == position })
			if expires := rows[i].Lookup("ttl").Kind() != change.KindAbsent; expires != (stays < 0) {
				t.Errorf("the position expires: %t", expires)
			}
		})
	}
}

// TestRangeEndsWithoutItsFanOut takes the fan-out's own task away, as a repair does with a torn one.
func TestRangeEndsWithoutItsFanOut(t *testing.T) {
	w, open := rangedCrowd(t)
	e := open(w.sim)
	from := w.cutRenaming(e)
	tasks, _, err := host.ReadTasks(w.ctx, e.tables.Reader, e.planner)
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		if task.Range == 0 {
			if err := e.host.EndTask(w.ctx, task); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := e.WorkTasks(w.ctx); err != nil {
		t.Fatal(err)
	}
	if n := w.named("Bob"); n != children-1 {
		t.Errorf("%d comments are renamed, want %d", n, children-1)
	}
	w.expectTasks(e, 0)
	w.drain(e, from)
}

// TestReleasedRangeIsTakenAtOnce stops a worker gracefully in the middle of a piece.
func TestReleasedRangeIsTakenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, open := rangedCrowd(t)
		e := open(w.sim)
		from := w.cutRenaming(e)
		f, failing := &faulty{Client: w.sim, around: passAll}, true
		worker := open(f)
		f.around = func(op string, pass func() error) error {
			if op == "BatchGetItem" && failing {
				failing = false
				return errCrash
			}
			return pass()
		}
		if _, err := worker.WorkTasks(w.ctx); !errors.Is(err, errCrash) {
			t.Fatal(err)
		}
		began := e.host.Now()
		if _, err := e.WorkTasks(w.ctx); err != nil || e.host.Now().Sub(began) > heldPause {
			t.Errorf("%v after %s", err, e.host.Now().Sub(began))
		}
		w.expectTasks(e, 0)
		w.drain(e, from)
		w.expectNoDrift()
	})
}

// TestTaskIsHeldForATermOnly has workers that crashed hold a task: one of them with a clock that is days ahead.
func TestTaskIsHeldForATermOnly(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	for until, want := range map[time.Duration]bool{
		-time.Second: false, 0: false, time.Second: true, state.TaskTerm: true, 50 * time.Second: true, 24 * time.Hour: false,
	} {
		if held := (state.Task{Until: now.Add(until)}).IsHeld(now); held != want {
			t.Errorf("until %s: held %t, want %t", until, held, want)
		}
	}
}
