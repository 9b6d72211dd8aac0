package replay_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/replay"
	"github.com/dynamill/dynamill/internal/replay/sources"
)

func TestScanRederivesEveryItemThenSweeps(t *testing.T) {
	r := newRig(t)
	for i := range 50 {
		r.put("app", change.Key{Partition: fmt.Sprint(i), Sort: "a"})
	}
	r.put(stateTable, change.Key{Partition: "item/9", Sort: "entry"})
	var told replay.Progress
	cfg := r.process().config(nil)
	cfg.Report = func(p replay.Progress) { told = p }
	totals, err := replay.Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.times("rederive"); !maps.Equal(got, map[int]int{1: 50}) {
		t.Errorf("items were rederived %v times", got)
	}
	if r.works["sweep item%2F9/entry"] != 1 {
		t.Errorf("the entry was not swept: %v", r.works)
	}
	if diff := cmp.Diff([]string{"rederive", "sweep"}, r.completed); diff != "" {
		t.Errorf("completed:\n%s", diff)
	}
	if totals.Passes != 2 || totals.Items < 51 || totals.ReadUnits == 0 || told.PiecesDone != 4 || told.Pieces != 4 || told.Number != 2 ||
		told.Of != 2 {
		t.Errorf("totals are %+v, told was %+v", totals, told)
	}
}

func TestPartialReplayOnlyRederives(t *testing.T) {
	for name, change := range map[string]func(*replay.Config){
		"rederive":               func(c *replay.Config) { c.Source = newBook(2, 2) },
		"rederive/author,member": func(c *replay.Config) { c.Rules = []string{"member", "author"} },
	} {
		r := newRig(t)
		r.left = []string{"derive/2/0"}
		cfg := r.process().config(nil)
		change(&cfg)
		if _, err := replay.Run(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{name}, r.completed); diff != "" {
			t.Errorf("completed:\n%s", diff)
		}
	}
}

func TestRulesThatAreNotInForceAreBroughtIntoForceAndNothingElse(t *testing.T) {
	r := newRig(t)
	r.put("app", change.Key{Partition: "x", Sort: "a"})
	passes := []string{"derive/2/0", "show/2/0", "clean/2", "sweep/2"}
	r.left = slices.Clone(passes)
	if _, err := replay.Run(t.Context(), r.process().config(nil)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(passes, r.completed); diff != "" {
		t.Errorf("completed:\n%s", diff)
	}
	if len(r.times("rederive")) > 0 {
		t.Error("all was rederived after the rules had come into force")
	}
}

func TestAReplayThatIsDoneBeginsAnew(t *testing.T) {
	r := newRig(t)
	source := newBook(3, 2)
	for i := 1; i <= 2; i++ {
		if _, err := replay.Run(t.Context(), r.process().config(source)); err != nil {
			t.Fatal(err)
		}
		if got := r.times("rederive"); !maps.Equal(got, map[int]int{i: 6}) {
			t.Errorf("after %d replays: %v", i, got)
		}
	}
	if rows := r.rows("run"); len(rows) != 1 {
		t.Errorf("%d runs, want 1 of another generation", len(rows))
	}
}

// stopAfter ends a replay by its context after n pages.
func (r *rig) stopAfter(n int, cfg replay.Config) error {
	ctx, cancel := context.WithCancelCause(r.t.Context())
	begun := 0
	cfg.Engine.(*process).hook = func(call string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if call == "work" {
			if begun++; begun == n {
				cancel(errKilled)
			}
		}
	}
	_, err := replay.Run(ctx, cfg)
	return err
}

func TestStoppedReplayFinishesItsPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.slow = time.Second
		source := newBook(6, 5)
		if err := r.stopAfter(7, r.process().config(source)); !errors.Is(err, errKilled) {
			t.Fatalf("a replay that was stopped ended with %v", err)
		}
		if len(r.completed) > 0 || r.begun >= 30 {
			t.Fatalf("%d pages of 30, %v", r.begun, r.completed)
		}
		before := time.Now()
		if _, err := replay.Run(t.Context(), r.process().config(source)); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(before); took >= term {
			t.Errorf("it took %s: pieces were not given up", took)
		}
		if got := r.times("rederive"); !maps.Equal(got, map[int]int{1: 30}) {
			t.Errorf("pages were worked off %v times", got)
		}
	})
}

func TestRestartForgetsFinishedPieces(t *testing.T) {
	r := newRig(t)
	source := newBook(2, 10)
	_ = r.stopAfter(8, r.process().config(source))
	done := r.begun
	cfg := r.process().config(source)
	cfg.Restart = true
	if _, err := replay.Run(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if r.begun != done+20 {
		t.Errorf("%d pages after %d, want 20 more", r.begun, done)
	}
}

func TestOtherSegmentsRulesVersionsOrConsistencyAreOtherWork(t *testing.T) {
	r := newRig(t)
	for i := range 5 {
		r.put("app", change.Key{Partition: fmt.Sprint(i), Sort: "a"})
	}
	whole := r.process().config(nil)
	changed := []func(*replay.Config){
		func(*replay.Config) {},
		func(c *replay.Config) { c.Version = "2" },
		func(c *replay.Config) { c.Rules = []string{"a"} },
		func(c *replay.Config) { c.Source = newBook(1, 1) },
		func(c *replay.Config) {
			c.Scan = sources.ScanConfig{Client: r.sim, Keys: blogKeys, Segments: 5}
		},
		func(c *replay.Config) {
			c.Scan = sources.ScanConfig{Client: r.sim, Keys: blogKeys, Segments: 4, EventuallyConsistent: true}
		},
	}
	runs := map[string]bool{}
	for range 2 {
		for _, change := range changed {
			cfg := whole
			change(&cfg)
			step, err := replay.Next(t.Context(), cfg, replay.Step{})
			if err != nil {
				t.Fatal(err)
			}
			runs[step.Run] = true
		}
	}
	if len(runs) != len(changed) {
		t.Errorf("%d runs, want %d", len(runs), len(changed))
	}
	whole.Rules = []string{"a", "a"}
	if step, err := replay.Next(t.Context(), whole, replay.Step{}); err != nil || !runs[step.Run] {
		t.Errorf("a rule that is named twice is other work: %v", err)
	}
}

func TestAResumedScanKeepsTheSegmentsThatItWasBegunWith(t *testing.T) {
	r := newRig(t)
	cfg := r.process().config(nil)
	segments := 3
	cfg.Scan = sources.ScanConfig{Client: r.sim, Keys: blogKeys, Segments: 0}
	first, err := replay.Next(t.Context(), cfg, replay.Step{})
	if err != nil {
		t.Fatal(err)
	}
	// The rows say how many there were; a table that has grown asks for more.
	for _, row := range r.rows("run") {
		row["segments"] = r.text("3 3")
		r.overwrite(row)
	}
	again, err := replay.Next(t.Context(), cfg, replay.Step{})
	if err != nil {
		t.Fatal(err)
	}
	if len(first.Pieces) == segments || again.Run != first.Run || again.Generation != first.Generation || len(again.Pieces) != segments {
		t.Errorf("a replay of %d segments was resumed as %+v", len(first.Pieces), again)
	}
}

// TestAReplayMayTakeMonths is that of a large table at a low rate: its rows must outlive it.
func TestAReplayMayTakeMonths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		_, err := r.sim.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
			TableName:               aws.String(stateTable),
			TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("ttl"), Enabled: aws.Bool(true)},
		})
		if err != nil {
			t.Fatal(err)
		}
		r.slow = 5 * 24 * time.Hour
		p := r.process()
		p.hook = func(string) { r.sim.ExpireItems() }
		cfg := p.config(newBook(2, 8))
		cfg.Parallel, cfg.Term = 1, 24*time.Hour // or millions of renewals are simulated
		if totals, err := replay.Run(t.Context(), cfg); err != nil || totals.Items != 16 || len(r.completed) != 1 {
			t.Errorf("%+v, %v, %v completed", totals, err, r.completed)
		}
	})
}

func TestPiecesThatFailDoNotStopTheOthersAndAreNamed(t *testing.T) {
	r := newRig(t)
	source := newBook(6, 3)
	corrupt := errors.New("checksum differs")
	source.torn["part-1"], source.torn["part-4"] = corrupt, corrupt
	_, err := replay.Run(t.Context(), r.process().config(source))
	var failed *replay.PiecesError
	if !errors.As(err, &failed) || len(failed.Errors) != 2 || !errors.Is(err, corrupt) ||
		!strings.Contains(err.Error(), "part-1") || !strings.Contains(err.Error(), "part-4") || !strings.Contains(err.Error(), "2 of 6") {
		t.Fatalf("the replay ended with %v", err)
	}
	if got := r.times("rederive"); !maps.Equal(got, map[int]int{1: 12}) || len(r.completed) > 0 {
		t.Errorf("pages were worked off %v times, %v completed", got, r.completed)
	}
	delete(source.torn, "part-1")
	delete(source.torn, "part-4")
	if _, err := replay.Run(t.Context(), r.process().config(source)); err != nil {
		t.Fatal(err)
	}
	if got := r.times("rederive"); !maps.Equal(got, map[int]int{1: 18}) || len(r.completed) != 1 {
		t.Errorf("after they were mended: %v, %v completed", got, r.completed)
	}
}

func TestFailureOfTheEngineEndsTheReplay(t *testing.T) {
	r := newRig(t)
	p := r.process()
	p.hook = func(call string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if call == "work" && r.begun == 5 {
			p.kill()
		}
	}
	cfg := p.config(newBook(10, 10))
	cfg.Parallel = 1
	cfg.State = r.process()
	if _, err := replay.Run(t.Context(), cfg); !errors.Is(err, errKilled) || strings.Count(err.Error(), "killed") != 1 {
		t.Errorf("the replay ended with %v", err)
	}
}
