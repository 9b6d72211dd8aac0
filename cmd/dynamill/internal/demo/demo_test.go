package demo

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/sim/workbench"
	"github.com/dynamill/dynamill/internal/story"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// costs are the figures in the output that an economy of the engine may change.
var costs = regexp.MustCompile(`[0-9.]+ (wu|in its\s+state|stream\s+records)`)

// TestRunShowsEachExample holds the plain output of every example, but for
// what it cost, to its golden file, and its lines to the width of a terminal.
func TestRunShowsEachExample(t *testing.T) {
	for _, name := range story.Names() {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			synctest.Test(t, func(t *testing.T) { // so that no time is spent on waiting
				if err := Run(t.Context(), name, &got, false); err != nil {
					t.Fatalf("%v\n%s", err, got.String())
				}
			})
			for line := range strings.Lines(got.String()) {
				if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > columnsMax {
					t.Errorf("%d columns: %s", n, line)
				}
			}
			shown := costs.ReplaceAll(got.Bytes(), []byte("N $1"))
			golden := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(golden, shown, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(shown)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestColoursAddNothingButColours: without its escape sequences the coloured
// output is the plain one.
func TestColoursAddNothingButColours(t *testing.T) {
	var withColours, without bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		if err := errors.Join(Run(t.Context(), "", &withColours, true), Run(t.Context(), Default, &without, false)); err != nil {
			t.Fatal(err)
		}
	})
	stripped := regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(withColours.String(), "")
	if stripped == withColours.String() {
		t.Error("there are no colours")
	}
	if diff := cmp.Diff(without.String(), stripped); diff != "" {
		t.Error(diff)
	}
}

// TestRunNoticesABrokenEngine has another program write to the table behind the
// engine's back, so that what it left there is wrong at the end.
func TestRunNoticesABrokenEngine(t *testing.T) { synctest.Test(t, runNoticesABrokenEngine) }

func runNoticesABrokenEngine(t *testing.T) {
	ex, err := story.Load(Default, projections.Kinds)
	if err != nil {
		t.Fatal(err)
	}
	bench, err := workbench.New(t.Context(), ex.Set)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	p := newPlay(ex, bench, &out, false)
	if err := p.firstRun(t.Context()); err != nil {
		t.Fatal(err)
	}
	tampered := change.Item{"pk": change.String("GROUP#dev"), "sk": change.String("METADATA"), "memberCount": change.Number("99")}
	if err := bench.Update(t.Context(), tampered); err != nil {
		t.Fatal(err)
	}
	err = p.verify(t.Context())
	if flushErr := p.paper.flush(); flushErr != nil {
		t.Fatal(flushErr)
	}
	if !errors.Is(err, ErrDrift) {
		t.Errorf("got %v, want drift", err)
	}
	if !strings.Contains(out.String(), "memberCount: want 2, got 99 (rule member-count)") {
		t.Errorf("the drift is not shown:\n%s", out.String())
	}
}

func TestRunRefusesAnUnknownExample(t *testing.T) {
	err := Run(t.Context(), "nothing", io.Discard, false)
	const names = "blog, downloads, folders, groups, indexes, likes, metrics, orders, projects, store, subscriptions, tags"
	if err == nil || !strings.Contains(err.Error(), names) {
		t.Errorf("got %v, want the names of the examples", err)
	}
}

func TestRunStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Run(ctx, Default, io.Discard, false); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}
