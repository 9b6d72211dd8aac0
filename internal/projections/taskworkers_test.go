package projections

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// taking is a client of the world's table whose writes to items take a time, and other requests some milliseconds.
func (w *world) taking(forItems time.Duration) table.Client {
	return &faulty{Client: w.sim, around: func(op string, pass func() error) error {
		if op == "BatchExecuteStatement" {
			time.Sleep(forItems)
		}
		time.Sleep(5 * time.Millisecond)
		return pass()
	}}
}

// workTogether has workers work off all tasks, and returns how long they take.
func workTogether(t *testing.T, engines ...*Engine) time.Duration {
	began := time.Now()
	var all sync.WaitGroup
	for _, e := range engines {
		all.Go(func() {
			if _, err := e.WorkTasks(t.Context()); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(37 * time.Millisecond)
	}
	all.Wait()
	return time.Since(began)
}

// Each worker takes tasks from the others in the middle of a piece, as its clock says that their terms are over.
func TestWorkersWhoseClocksDifferEndATask(t *testing.T) {
	for _, ahead := range []time.Duration{0, 10 * time.Second, 30 * time.Second, 50 * time.Second, 5 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			w, _ := crowd(t)
			var engines []*Engine
			for i := range 4 {
				e, err := Open(w.ctx, Config{Client: w.taking(time.Second), Table: "app", Rules: loadRules(t, socialRules), FanOutMax: 5,
					Worker: fmt.Sprint(i), Now: func() time.Time { return time.Now().Add(time.Duration(i) * ahead) }})
				if err != nil {
					t.Fatal(err)
				}
				engines = append(engines, e)
			}
			from := w.drain(engines[0], 0)
			w.rename("Bob")
			w.drain(engines[0], from)
			if took := workTogether(t, engines...); took > 15*time.Second {
				t.Errorf("clocks %s apart: pieces of 4 s took %s", ahead, took)
			}
			if n := w.named("Bob"); n != children {
				t.Errorf("clocks %s apart: %d of %d comments are renamed", ahead, n, children)
			}
		})
	}
}

func TestAWorkerWithoutBudgetDoesMostOfATask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := crowd(t)
		for i := range 200 {
			w.put(comment(fmt.Sprintf("d%03d", i), change.Item{"userId": s("u1")}))
		}
		var engines []*Engine
		for i, budget := range []int{1, 0} {
			e, err := Open(w.ctx, Config{Client: w.taking(0), Table: "app", Rules: loadRules(t, socialRules), FanOutMax: 5,
				Worker: fmt.Sprint(i), Budget: budget})
			if err != nil {
				t.Fatal(err)
			}
			engines = append(engines, e)
		}
		from := w.drain(engines[1], 0)
		w.rename("Bob")
		w.drain(engines[1], from)
		if took := workTogether(t, engines...); took > time.Minute {
			t.Errorf("223 children took %s, of which a budget of one unit a second alone pays 10 minutes", took)
		}
	})
}

// Each user has a few comments more than are written with the record.
func TestManyTasksAreListedFewTimes(t *testing.T) {
	const users = 80
	w := newWorld(t, socialRules)
	var queries atomic.Int64
	e, err := Open(w.ctx, Config{Table: "app", Rules: loadRules(t, socialRules), FanOutMax: 5,
		Client: &faulty{Client: w.sim, around: func(op string, pass func() error) error {
			if op == "Query" {
				queries.Add(1)
			}
			return pass()
		}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Seed(w.ctx, nil); err != nil {
		t.Fatal(err)
	}
	rename := func(name string) {
		for u := range users {
			w.put(change.Item{"pk": s(fmt.Sprintf("USER#u%d", u)), "sk": s("PROFILE"), "name": s(name)})
		}
	}
	rename("Ann")
	for u := range users {
		for i := range 7 {
			w.put(comment(fmt.Sprintf("c%d-%d", u, i), change.Item{"userId": s(fmt.Sprintf("u%d", u))}))
		}
	}
	from := w.drain(e, 0)
	rename("Bob")
	w.drain(e, from)
	queries.Store(0)
	if did, err := e.WorkTasks(w.ctx); err != nil || did.Pieces != users {
		t.Fatal(did.Pieces, err)
	}
	if n := queries.Load(); n > users+25 {
		t.Errorf("%d queries for the children of %d tasks", n, users)
	}
	w.expectNoDrift()
}

func TestCuttingRangesKeepsToTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many, budget = 500, 10
		w := newWorld(t, socialRules)
		seeded := w.seeded()
		w.rename("Ann")
		for i := range many {
			w.put(comment(fmt.Sprintf("c%05d", i), change.Item{"userId": s("u1")}))
		}
		from := w.drain(seeded, 0)
		e, err := Open(w.ctx, Config{Client: w.taking(0), Table: "app", Rules: loadRules(t, socialRules),
			FanOutMax: 50, RangesMin: 40, Budget: budget})
		if err != nil {
			t.Fatal(err)
		}
		w.rename("Bob")
		w.drain(e, from)
		time.Sleep(time.Minute)
		ended := make(chan error)
		go func() {
			_, err := e.WorkTasks(w.ctx)
			ended <- err
		}()
		var took []float64
		for working := true; working; {
			took = append(took, w.sim.Usage().WriteUnits)
			select {
			case err := <-ended:
				if working = false; err != nil {
					t.Error(err)
				}
			case <-time.After(time.Second):
			}
		}
		for i := 10; i < len(took); i++ {
			if units := took[i] - took[i-10]; units > 13*budget { // its tasks are held and noted beside
				t.Errorf("%.0f units in the ten seconds up to second %d, want at most %d", units, i, 13*budget)
			}
		}
		w.expectTasks(e, 0)
	})
}

// The key of a task of a long parent is cut, so that only its attributes tell the range.
func TestARangeOfALongKeyThatLostItsNumberIsTorn(t *testing.T) {
	w := newWorld(t, socialRules)
	id := strings.Repeat("u", 1100)
	user := func(name string) change.Item {
		return change.Item{"pk": s("USER#" + id), "sk": s("PROFILE"), "name": s(name)}
	}
	e, err := Open(w.ctx, Config{Client: w.sim, Table: "app", Rules: loadRules(t, socialRules), FanOutMax: 5, RangesMin: 8})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Seed(w.ctx, nil); err != nil {
		t.Fatal(err)
	}
	w.put(user("Ann"))
	for i := range children {
		w.put(comment(fmt.Sprintf("c%02d", i), change.Item{"userId": s(id)}))
	}
	from := w.drain(e, 0)
	w.put(user("Bob"))
	w.drain(e, from)
	for range 2 {
		w.workRow(e, 0)
	}
	for _, row := range w.scan("app-dynamill") {
		if row["pk"].Text() == "tasks" && row["range"].Text() == "2" {
			delete(row, "range")
			w.putState(row)
		}
	}
	ctx, cancel := context.WithTimeout(w.ctx, 10*time.Second)
	defer cancel()
	if _, err := e.WorkTasks(ctx); err == nil || !strings.Contains(err.Error(), "run `dynamill verify --repair`") {
		t.Errorf("error %v, want one that names the remedy", err)
	}
	w.expectTasks(e, 1)
}
