package projections

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynamill/dynamill/change"
)

// TestADisplayThatWaitsIsOfTheGenerationInForce has a generation go live while a display waits, and while a process that knows nothing of
// that is about to do it. The record behind that display is in the new generation alone.
func TestADisplayThatWaitsIsOfTheGenerationInForce(t *testing.T) {
	w := newWorld(t, hotRule)
	w.put(w.keyItem(likedPost("a")))
	e := w.counting()
	start := time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC)
	var passed atomic.Int64 // requests that go side by side read the time
	if err := e.Recount(w.ctx, []string{"likes", "weight"}); !errors.Is(err, ErrEpochMoved) {
		t.Fatalf("a new generation begins with %v", err)
	}
	open := func(f *faulty) *Engine {
		t.Helper()
		f.Client, f.around = w.sim, passAll
		e, err := Open(w.ctx, Config{Client: f, Table: "app", Rules: loadRules(t, w.file), Count: w.plainCount, DisplayEvery: 30 * time.Second,
			Now: func() time.Time { return start.Add(time.Duration(passed.Load())) }})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	worker := open(&faulty{})
	s, err := worker.OpenShard(w.ctx, ShardClaim{Shard: "s", Checkpoint: w.records()[0].Position.SequenceNumber(), Trimmed: whole})
	if err != nil {
		t.Fatal(err)
	}
	like := func(id string) {
		t.Helper()
		w.like(id, "a", 1)
		all := w.records()
		for range 2 { // the first time it may learn that a generation went live
			if _, err := s.Process(w.ctx, []change.Record{all[len(all)-1]}); err != nil {
				t.Fatal(err)
			}
		}
	}
	like("1")
	like("2") // is put off
	var mu sync.Mutex
	done := false
	idle := &faulty{}
	other := open(idle)
	idle.before = func(op string, in any) {
		if _, is := in.(*dynamodb.QueryInput); !is {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if !done { // it lists tasks, and has read the registry just before
			done = true
			if err := open(&faulty{}).Seed(w.ctx, nil); err != nil {
				t.Error(err)
			}
			like("3")
		}
		passed.Add(int64(40 * time.Second))
	}
	if _, err := other.WorkTasks(w.ctx); err != nil {
		t.Fatal(err)
	}
	if !done {
		t.Fatal("the other process listed no tasks")
	}
	w.expectLikes("a")
}

// TestACountOfAFormerStateTableNotesNothing has the state table deleted and made anew while a count is about to note that it has begun. The
// generations of both state tables have one number.
func TestACountOfAFormerStateTableNotesNothing(t *testing.T) {
	w := newWorld(t, hotRule)
	var outcome error
	count := func(ctx context.Context, g *Generation, _ func(int64)) error {
		if _, err := w.sim.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: new("app-dynamill")}); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(ctx, Config{Client: w.sim, Table: "app", Rules: loadRules(t, w.file)}); err != nil {
			t.Fatal(err)
		}
		outcome = g.MarkBegun(ctx, "")
		return outcome
	}
	e, err := Open(w.ctx, Config{Client: w.sim, Table: "app", Rules: loadRules(t, w.file), Count: count})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Seed(w.ctx, nil); !errors.Is(err, ErrEpochMoved) || !errors.Is(outcome, ErrEpochMoved) {
		t.Errorf("the count ends with %v, seeding with %v", outcome, err)
	}
	for _, row := range w.scan("app-dynamill") {
		if begun := row["begun"].Text(); begun != "" {
			t.Errorf("rule %s has begun generation %s", row["name"].Text(), begun)
		}
	}
}
