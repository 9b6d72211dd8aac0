package main

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/progress"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/projections"
	"github.com/dynamill/dynamill/replay/verify"
)

func TestColourFollowsTheFlagWhereThereIsNoTerminal(t *testing.T) {
	for color, want := range map[string]bool{colorAuto: false, "": false, colorAlways: true, colorNever: false} {
		var out bytes.Buffer
		a := &output{stdout: printable.NewWriter(&out), stderr: printable.NewWriter(&out), color: color, logLevel: "info"}
		if a.printOutcome(progress.Green, "done \x1b[2J\n"); a.failed != nil {
			t.Fatal(a.failed)
		}
		a.logger(a.stderr).With("worker", "w").WithGroup("g").Warn("careful")
		a.logger(a.stderr).Info("as usual")
		a.report(invalid("wrong \x1b[2J"))
		lines := strings.Split(out.String(), "\n")
		if strings.Contains(out.String(), "\x1b[2J") || len(lines) != 5 {
			t.Fatalf("--color %q prints %q", color, out.String())
		}
		for i, l := range []struct{ colour, text string }{
			{progress.Green, "done"}, {progress.Yellow, "time="}, {"", "time="}, {progress.Red, "dynamill: wrong"},
		} {
			start := l.text
			if want {
				start = l.colour + l.text
			}
			if !strings.HasPrefix(lines[i], start) || !want && strings.Contains(lines[i], "\x1b[") {
				t.Errorf("--color %q: line %d is %q", color, i, lines[i])
			}
		}
	}
}

func TestJSONIsNeverColoured(t *testing.T) {
	var out bytes.Buffer
	a := &output{stderr: printable.NewWriter(&out), color: colorAlways, logLevel: "info", json: true}
	a.logger(a.stderr).Log(t.Context(), slog.LevelError, "failed")
	if strings.Contains(out.String(), "\x1b") || !strings.HasPrefix(out.String(), "{") {
		t.Errorf("%q", out.String())
	}
}

func TestColorRefusesOtherValues(t *testing.T) {
	code, _, stderr := command(t, "version", "--color", "sometimes")
	if code != exitInvalid || !strings.Contains(stderr, `--color "sometimes" is not one of auto, always, never`) {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	if code, _, stderr := command(t, "version", "--color", "sometimes", "--color", "never"); code != exitDone {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}

func TestAutoAsksForATerminal(t *testing.T) {
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if (&output{color: colorAuto}).coloured(file) {
		t.Error("a file is coloured")
	}
}

func TestOutcomesHaveTheirColours(t *testing.T) {
	warned := sightings{}
	warned.Cases = []projections.CaseMismatch{{}}
	for _, c := range []struct {
		summary verify.Summary
		waiting []string
		seen    sightings
		want    string
	}{
		{verify.Summary{}, nil, sightings{}, progress.Green},
		{verify.Summary{Undecided: map[string]int64{"still moving": 1}}, nil, sightings{}, progress.Yellow},
		{verify.Summary{}, []string{"a rule that is not live"}, sightings{}, progress.Yellow},
		{verify.Summary{}, nil, warned, progress.Yellow},
		{verify.Summary{Found: map[drift.Kind]int64{drift.Sum: 1}}, nil, warned, progress.Red},
		{verify.Summary{Found: map[drift.Kind]int64{drift.Sum: 1}, Repaired: 1}, nil, sightings{}, progress.Green},
	} {
		r := &verifyReport{waiting: c.waiting, seen: c.seen}
		if got := r.colour(&c.summary); got != c.want {
			t.Errorf("%+v is %q, want %q", c, got, c.want)
		}
	}
	if outcomeColour(0) != progress.Green || outcomeColour(1) != progress.Yellow {
		t.Error("parked records are no warning")
	}
}
