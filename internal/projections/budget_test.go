package projections

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynamill/dynamill/change"
)

// crowdUnderBudget is a crowd whose user was renamed while nothing was left of the budget: most children wait in a task.
func crowdUnderBudget(t *testing.T, budget int) (*world, *Engine) {
	w, open := crowd(t)
	e := open(w.sim)
	e.host.FanOutMax = fanOutMaxDefault
	from := w.drain(e, 0)
	e, err := Open(w.ctx, Config{Client: w.sim, Table: "app", Rules: loadRules(t, socialRules), Budget: budget})
	if err != nil {
		t.Fatal(err)
	}
	e.tables.Budget.Spend(1e6, false)
	w.rename("Bob")
	w.drain(e, from)
	w.expectTasks(e, 1)
	return w, e
}

// A Lambda function, for one, works on tasks for a few seconds at a time.
func TestTaskThatWaitsForBudgetKeepsItsPlaceWhenItsProcessEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, e := crowdUnderBudget(t, 3)
		for range 15 {
			ctx, cancel := context.WithTimeout(w.ctx, 4*time.Second)
			_, err := e.WorkTasks(ctx)
			cancel()
			if err == nil {
				break
			}
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
		}
		if n := w.named("Bob"); n != children {
			t.Errorf("%d of %d comments are renamed", n, children)
		}
		w.expectTasks(e, 0)
	})
}

// The writes that hold and save a task would use up what the budget keeps for its children.
func TestHoldingATaskTakesNothingFromItsChildren(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, e := crowdUnderBudget(t, 1)
		ctx, cancel := context.WithCancel(w.ctx)
		overspent := make(chan struct{})
		go func() {
			defer close(overspent)
			for ctx.Err() == nil {
				e.tables.Budget.Spend(100, false) // records of the stream
				time.Sleep(time.Second)
			}
		}()
		began := time.Now()
		_, err := e.WorkTasks(w.ctx)
		cancel()
		<-overspent
		if took := time.Since(began); err != nil || took > children*30*time.Second {
			t.Errorf("%d children took %s, %v; at a tenth of a unit a second want 30 s each: copy, place of the task, and note of what waits",
				children, took, err)
		}
		if n := w.named("Bob"); n != children {
			t.Errorf("%d of %d comments are renamed", n, children)
		}
	})
}

func TestRepairThatWaitedForBudgetLeavesNoTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, e := crowdUnderBudget(t, 3)
		if _, err := e.WorkTasks(w.ctx); err != nil {
			t.Fatal(err)
		}
		for i := range children {
			w.update(change.Key{Partition: "POST#p1", Sort: fmt.Sprintf("COMMENT#c%02d", i)}, change.Item{"userName": s("spoiled")})
		}
		e.tables.Budget.Spend(1e6, false)
		if err := e.Rederive(w.ctx, []change.Key{{Partition: "USER#u1", Sort: "PROFILE"}}); err != nil {
			t.Fatal(err)
		}
		w.expectTasks(e, 0)
		if n := w.named("Bob"); n != children {
			t.Errorf("%d of %d comments are repaired", n, children)
		}
	})
}
