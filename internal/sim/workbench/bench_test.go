package workbench_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/sim/workbench"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const likesRules = `
version: 1
table: { keys: [pk, sk] }
entities:
  Post: { key: { pk: "POST#${postId}", sk: "METADATA" } }
  Like: { key: { pk: "POST#${postId}", sk: "LIKE#${userId}" } }
rules:
  like-count: { count: Like, as: Post.likes }
`

func newBench(t *testing.T) *workbench.Bench {
	t.Helper()
	set, err := rules.Load("dynamill.yaml", []byte(likesRules), projections.Kinds)
	if err != nil {
		t.Fatal(err)
	}
	bench, err := workbench.New(t.Context(), set)
	if err != nil {
		t.Fatal(err)
	}
	return bench
}

func item(partition, sort string) change.Item {
	return change.Item{"pk": change.String(partition), "sk": change.String(sort)}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func likesOf(t *testing.T, bench *workbench.Bench) string {
	t.Helper()
	items, err := bench.Items(t.Context())
	must(t, err)
	for _, it := range items {
		if it["sk"].Text() == "METADATA" {
			return it["likes"].Text()
		}
	}
	t.Fatal("the post is not there")
	return ""
}

func TestDrainCarriesTheApplicationsWritesToTheEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bench := newBench(t)
		must(t, bench.Put(t.Context(), item("POST#1", "METADATA")))
		must(t, bench.Put(t.Context(), item("POST#1", "LIKE#ada")))
		must(t, bench.Drain(t.Context()))
		must(t, bench.Put(t.Context(), item("POST#1", "LIKE#ben")))
		must(t, bench.Put(t.Context(), item("POST#1", "LIKE#eve")))
		must(t, bench.Delete(t.Context(), item("POST#1", "LIKE#ada")))
		must(t, bench.Drain(t.Context()))
		if got := likesOf(t, bench); got != "2" {
			t.Errorf("likes: got %s, want 2", got)
		}
	})
}

func TestACrashLetsNothingThroughUntilTheNextDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bench := newBench(t)
		must(t, bench.Put(t.Context(), item("POST#1", "METADATA")))
		must(t, bench.Drain(t.Context()))
		must(t, bench.Put(t.Context(), item("POST#1", "LIKE#ada")))
		bench.Usage()

		bench.CrashAfter(0)
		if err := bench.Drain(t.Context()); !errors.Is(err, workbench.ErrCrashed) {
			t.Fatalf("got %v, want a crash", err)
		}
		if u := bench.Usage(); u.Table+u.State != 0 {
			t.Errorf("a process that is dead wrote %v", u)
		}
		if got := likesOf(t, bench); got != "" && got != "0" {
			t.Errorf("likes: got %s, want none", got)
		}
		must(t, bench.Drain(t.Context()))
		if got := likesOf(t, bench); got != "1" {
			t.Errorf("likes: got %s, want 1: the new process must begin at the old checkpoint", got)
		}
	})
}

func TestUsageTellsTheApplicationFromTheEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bench := newBench(t)
		must(t, bench.Put(t.Context(), item("POST#1", "METADATA")))
		must(t, bench.Drain(t.Context()))
		bench.Usage()

		must(t, bench.Update(t.Context(), change.Item{
			"pk": change.String("OTHER#1"), "sk": change.String("THING"), "size": change.Number("1"),
		}))
		must(t, bench.Drain(t.Context()))
		want := workbench.Usage{Application: 1, Records: 1}
		if diff := cmp.Diff(want, bench.Usage()); diff != "" {
			t.Errorf("an item that no rule names must cost the engine nothing:\n%s", diff)
		}
		if diff := cmp.Diff(workbench.Usage{}, bench.Usage()); diff != "" {
			t.Errorf("usage is counted from the last call:\n%s", diff)
		}
	})
}

func TestReadingTheStreamAgainFromItsBeginningChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bench := newBench(t)
		must(t, bench.Put(t.Context(), item("POST#1", "METADATA")))
		must(t, bench.Put(t.Context(), item("POST#1", "LIKE#ada")))
		must(t, bench.Put(t.Context(), item("POST#1", "LIKE#ben")))
		must(t, bench.Delete(t.Context(), item("POST#1", "LIKE#ada")))
		must(t, bench.Drain(t.Context()))
		before, err := bench.Items(t.Context())
		must(t, err)
		read := bench.Usage().Records

		bench.Forget()
		must(t, bench.Drain(t.Context()))
		after, err := bench.Items(t.Context())
		must(t, err)
		if again := bench.Usage().Records; again < read {
			t.Errorf("read %d records again of %d", again, read)
		}
		if diff := cmp.Diff(fmt.Sprint(before), fmt.Sprint(after)); diff != "" {
			t.Error(diff)
		}
	})
}

// TestRecordsThatComeTwiceCountTwiceByHandAlone has every third of six records come twice, and then a process that dies, so
// that all its records come again.
func TestRecordsThatComeTwiceCountTwiceByHandAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bench := newBench(t)
		must(t, bench.CountByHand(t.Context(), []string{"like-count"}))
		must(t, bench.Put(t.Context(), item("POST#1", "METADATA")))
		must(t, bench.Drain(t.Context()))
		expect := func(doing, likes string, byHand int) {
			t.Helper()
			totals, err := bench.ByHand(t.Context())
			must(t, err)
			want := []workbench.Total{{Key: change.Key{Partition: "POST#1", Sort: "METADATA"}, Attribute: "likes", Count: byHand}}
			if diff := cmp.Diff(want, totals); diff != "" || likesOf(t, bench) != likes {
				t.Errorf("%s: the engine has %s likes, want %s; by hand:\n%s", doing, likesOf(t, bench), likes, diff)
			}
		}
		for i := range 6 {
			must(t, bench.Put(t.Context(), item("POST#1", fmt.Sprintf("LIKE#%d", i))))
		}
		bench.RepeatEvery(3)
		must(t, bench.Drain(t.Context()))
		expect("the third and the sixth come twice", "6", 8)

		must(t, bench.Delete(t.Context(), item("POST#1", "LIKE#0")))
		must(t, bench.Drain(t.Context()))
		expect("one is taken back", "5", 7)

		must(t, bench.Put(t.Context(), item("POST#1", "LIKE#6")))
		bench.CrashAfter(1)
		if err := bench.Drain(t.Context()); !errors.Is(err, workbench.ErrCrashed) {
			t.Fatalf("got %v, want a crash", err)
		}
		must(t, bench.Drain(t.Context()))
		expect("the process dies", "6", 9)
	})
}

func TestOnlyCountsAreCountedByHand(t *testing.T) {
	bench := newBench(t)
	err := bench.CountByHand(t.Context(), []string{"like-count", "likes"})
	if err == nil || !strings.Contains(err.Error(), "likes is not a count") {
		t.Errorf("got %v, want the name of what is no rule", err)
	}
}
