package replay_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynamill/dynamill/replay"
)

// orchestrate replays as a state machine does: steps travel as JSON, each piece
// is given to calls of its own that have a second each, all pieces at once.
func (r *rig) orchestrate(source replay.Source) (calls int, err error) {
	var step replay.Step
	for {
		text, err := json.Marshal(step)
		if err != nil {
			return calls, err
		}
		var last replay.Step
		if err := json.Unmarshal(text, &last); err != nil {
			return calls, err
		}
		if step, err = replay.Next(r.t.Context(), r.process().config(source), last); err != nil || step.Done() {
			return calls, err
		}
		var group sync.WaitGroup
		for _, piece := range step.Pieces {
			group.Go(func() {
				for done := false; !done; {
					r.mu.Lock()
					calls++
					r.mu.Unlock()
					var failed error
					if done, failed = replay.WorkPiece(r.t.Context(), r.process().config(source), step, piece, time.Now().Add(time.Second)); failed != nil {
						r.t.Errorf("%s: %v", piece, failed)
						return
					}
				}
			})
		}
		group.Wait()
	}
}

func TestPiecesCanBeWorkedOffByManyShortCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.slow = 400 * time.Millisecond // three pages a call
		for range 2 {
			calls, err := r.orchestrate(newBook(5, 10))
			if err != nil {
				t.Fatal(err)
			}
			if calls != 20 {
				t.Errorf("%d calls, want 20 for 50 pages", calls)
			}
		}
		if got := r.times("rederive"); !maps.Equal(got, map[int]int{2: 50}) || len(r.completed) != 2 {
			t.Errorf("pages were worked off %v times in two replays, %v completed", got, r.completed)
		}
	})
}

func TestStepsBringRulesIntoForceOrSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		for i := range 10 {
			r.put("app", keyOf(i))
		}
		r.left = []string{"derive/2/0", "show/2/0"}
		for _, want := range []string{"derive/2/0 show/2/0", "derive/2/0 show/2/0 rederive sweep"} {
			if _, err := r.orchestrate(nil); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(r.completed, " "); got != want {
				t.Errorf("completed %s, want %s", got, want)
			}
		}
	})
}

// TestACallWaitsForTheDeadOne is that a call that was cut off without a word
// keeps its piece for a term, and that the next one waits for that as long as it may.
func TestACallWaitsForTheDeadOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.slow = time.Second
		source := newBook(1, 5)
		first := r.process()
		step, err := replay.Next(t.Context(), first.config(source), replay.Step{})
		if err != nil {
			t.Fatal(err)
		}
		first.hook = func(call string) {
			if call == "worked" {
				first.kill()
			}
		}
		if _, err := replay.WorkPiece(t.Context(), first.config(source), step, "part-0", time.Time{}); !errors.Is(err, errKilled) {
			t.Fatalf("the first call ended with %v", err)
		}
		second := r.process().config(source)
		if done, err := replay.WorkPiece(t.Context(), second, step, "part-0", time.Now().Add(term/2)); done || err != nil {
			t.Fatalf("within half a term: done %v, %v", done, err)
		}
		if done, err := replay.WorkPiece(t.Context(), second, step, "part-0", time.Now().Add(3*term)); !done || err != nil {
			t.Fatalf("within three terms: done %v, %v", done, err)
		}
		if done, err := replay.WorkPiece(t.Context(), second, step, "part-0", time.Now()); !done || err != nil {
			t.Fatalf("of a piece that is done: done %v, %v", done, err)
		}
	})
}

func TestAStepIsForItsSourceOnly(t *testing.T) {
	r := newRig(t)
	cfg := r.process().config(newBook(2, 1))
	step, err := replay.Next(t.Context(), cfg, replay.Step{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := replay.WorkPiece(t.Context(), cfg, step, "part-7", time.Time{}); err == nil || !strings.Contains(err.Error(), "part-7") {
		t.Errorf("a piece that is not there: %v", err)
	}
	cfg.Source = newBook(3, 1)
	if _, err := replay.WorkPiece(t.Context(), cfg, step, "part-0", time.Time{}); err == nil || !strings.Contains(err.Error(), "book of 3") {
		t.Errorf("another source: %v", err)
	}
	source := newBook(1, 1)
	source.torn["part-0"] = fmt.Errorf("torn")
	cfg.Source = source
	if step, err = replay.Next(t.Context(), cfg, replay.Step{}); err != nil {
		t.Fatal(err)
	}
	if done, err := replay.WorkPiece(t.Context(), cfg, step, "part-0", time.Time{}); done || err == nil {
		t.Errorf("a torn piece: done %v, %v", done, err)
	}
}
