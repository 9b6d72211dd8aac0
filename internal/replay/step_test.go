package replay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/replay"
	"github.com/dynamill/dynamill/internal/replay/sources"
)

// orchestrate replays as a state machine does: steps travel as JSON, each piece
// is given to calls of its own that have a second each, all pieces at once.
func (r *rig) orchestrate(source sources.Source) (calls int, err error) {
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
					if done, failed = replay.WorkPiece(r.t.Context(), r.process().config(source), step, piece,
						time.Now().Add(time.Second)); failed != nil {
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

// volume is a source of one page with many keys.
type volume struct{ keys int }

func (volume) Describe() string { return "volume" }

func (volume) Pieces(context.Context) ([]sources.Piece, error) {
	return []sources.Piece{{Name: "all"}}, nil
}

func (v volume) Read(context.Context, sources.Piece, string) (sources.Page, error) {
	page := sources.Page{Items: int64(v.keys) + 3, Last: true, Next: "end"} // three lines had no key
	for i := range v.keys {
		page.Keys = append(page.Keys, keyOf(i))
	}
	return page, nil
}

func TestALongPageIsStoppedWithinIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.slow = 4 * time.Second // for a slice of the page
		cfg := r.process().config(volume{500})
		step, err := replay.Next(t.Context(), cfg, replay.Step{})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if done, err := replay.WorkPiece(t.Context(), cfg, step, "all", began.Add(10*time.Second)); done || err != nil {
			t.Fatalf("done %v, %v", done, err)
		}
		if took := time.Since(began); took != 12*time.Second {
			t.Errorf("it took %s until the time had come", took)
		}
		ctx, stop := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { stop(errKilled) })
		began = time.Now()
		if _, err := replay.Run(ctx, cfg); !errors.Is(err, errKilled) || time.Since(began) != 4*time.Second {
			t.Errorf("a replay that was stopped ended with %v after %s", err, time.Since(began))
		}
		var items []int64
		cfg.Report = func(p replay.Progress) { items = append(items, p.Items) }
		totals, err := replay.Run(t.Context(), cfg)
		if err != nil || totals.Items != 503 || !slices.Contains(items, 50) || !slices.Contains(items, 450) {
			t.Errorf("%+v, %v, told %v", totals, err, items)
		}
		if got := r.times("rederive"); got[1]+got[2]+got[3] != 500 {
			t.Errorf("keys were worked off %v times", got)
		}
	})
}

// slowly is an engine that takes some time for every item.
type slowly struct {
	*process
	each time.Duration
}

func (s slowly) Work(ctx context.Context, pass string, keys []change.Key) error {
	time.Sleep(s.each * time.Duration(len(keys)))
	return s.process.Work(ctx, pass, keys)
}

// TestEveryInvocationGetsOn has time for three items in an invocation, for some more, or for
// all. None is worked off twice, and when the time has come the item in hand alone is finished.
func TestEveryInvocationGetsOn(t *testing.T) {
	for each, atMost := range map[time.Duration]int{5 * time.Minute: 60, time.Minute: 15, time.Millisecond: 4} {
		synctest.Test(t, func(t *testing.T) {
			const items, invocation = 100, 15 * time.Minute
			r := newRig(t)
			for i := range items {
				r.put("app", keyOf(i))
			}
			cfg := r.process().config(nil)
			cfg.Engine, cfg.Rules = slowly{r.process(), each}, []string{"some-rule"}
			step, err := replay.Next(t.Context(), cfg, replay.Step{})
			if err != nil {
				t.Fatal(err)
			}
			calls := 0
			for _, piece := range step.Pieces {
				for done := false; !done; calls++ {
					began, before := time.Now(), r.times("rederive/some-rule")[1]
					if done, err = replay.WorkPiece(t.Context(), cfg, step, piece, began.Add(invocation)); err != nil {
						t.Fatal(err)
					}
					if took := time.Since(began); took > invocation+each {
						t.Errorf("an item takes %s, and an invocation took %s", each, took)
					}
					if after := r.times("rederive/some-rule")[1]; !done && after < before+2 {
						t.Fatalf("an item takes %s, and an invocation did %d", each, after-before)
					}
				}
			}
			if got := r.times("rederive/some-rule"); got[1] != items || calls > atMost {
				t.Errorf("an item takes %s: items were worked off %v times in %d invocations, want once in %d at most", each, got, calls, atMost)
			}
		})
	}
}

// stuck is an engine whose work ends with its context only.
type stuck struct{ *process }

func (s stuck) Work(ctx context.Context, _ string, _ []change.Key) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestAStopDoesNotWaitForeverForTheEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		cfg := r.process().config(newBook(2, 2))
		cfg.Engine = stuck{r.process()}
		ctx, stop := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { stop(errKilled) })
		began := time.Now()
		if _, err := replay.Run(ctx, cfg); !errors.Is(err, errKilled) || time.Since(began) > time.Minute+term {
			t.Errorf("it ended with %v after %s", err, time.Since(began))
		}
		if owned := slices.ContainsFunc(r.rows("piece/"), func(row map[string]types.AttributeValue) bool { return row["owner"] != nil }); owned {
			t.Error("a piece was not given up")
		}
	})
}

func TestAPieceOfAScanIsFoundByItsName(t *testing.T) {
	r := newRig(t)
	r.put("app", keyOf(1))
	cfg := r.process().config(nil)
	step, err := replay.Next(t.Context(), cfg, replay.Step{})
	if err != nil {
		t.Fatal(err)
	}
	if done, err := replay.WorkPiece(t.Context(), cfg, step, step.Pieces[0], time.Time{}); !done || err != nil {
		t.Errorf("done %v, %v", done, err)
	}
	for _, name := range []string{"segment 5 of 4", "segment 1 of 5", "keys 1", "segment 1 of 4 and more", "segment 01 of 4"} {
		if _, err := replay.WorkPiece(t.Context(), cfg, step, name, time.Time{}); err == nil || !strings.Contains(err.Error(), "no piece") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestAnUnfinishedReplayIsGoneOnWithForADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.slow = time.Second
		source := newBook(4, 5)
		cfg := r.process().config(source)
		cfg.Parallel = 1
		var told []replay.Opened
		cfg.Opened = func(o replay.Opened) { told = append(told, o) }
		begun := time.Now()
		if err := r.stopAfter(6, cfg); !errors.Is(err, errKilled) || len(told) != 0 {
			t.Fatalf("the first ended with %v, told %+v", err, told)
		}
		time.Sleep(23 * time.Hour)
		if err := r.stopAfter(5, cfg); !errors.Is(err, errKilled) || len(told) != 1 {
			t.Fatalf("the second ended with %v, told %+v", err, told)
		}
		want := replay.Opened{Begun: begun, Number: 1, Of: 1, Pieces: 4, PiecesDone: 1}
		if got := told[0]; !got.Begun.Equal(want.Begun) || got.Number != 1 || got.Of != 1 || got.Pieces != 4 || got.PiecesDone != 1 ||
			!got.GivenUpAt.IsZero() {
			t.Errorf("told %+v, want %+v", got, want)
		}
		time.Sleep(23 * time.Hour) // more than a day after it was begun, but not after its progress
		if err := r.stopAfter(1, cfg); !errors.Is(err, errKilled) || len(told) != 2 || !told[1].GivenUpAt.IsZero() || told[1].PiecesDone != 2 {
			t.Fatalf("the third ended with %v, told %+v", err, told)
		}
		left := time.Now()
		time.Sleep(24*time.Hour + time.Minute)
		before := r.begun
		totals, err := replay.Run(t.Context(), cfg)
		if err != nil || len(told) != 3 || r.begun-before != 20 || totals.Items != 20 {
			t.Fatalf("the last: %+v, %v, %d pages, told %+v", totals, err, r.begun-before, told)
		}
		if off := left.Sub(told[2].GivenUpAt); off < 0 || off > 10*time.Second || told[2].PiecesDone != 0 {
			t.Errorf("given up at %s, which was left at %s: %+v", told[2].GivenUpAt, left, told[2])
		}
	})
}
