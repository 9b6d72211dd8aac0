package output

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/progress"
	"github.com/dynamill/dynamill/internal/printable"
)

func TestColourFollowsTheFlagWhereThereIsNoTerminal(t *testing.T) {
	for color, want := range map[string]bool{ColorAuto: false, "": false, ColorAlways: true, ColorNever: false} {
		var out bytes.Buffer
		a := &Output{Stdout: printable.NewWriter(&out), Stderr: printable.NewWriter(&out), Color: color, LogLevel: "info"}
		if a.PrintOutcome(progress.Green, "done \x1b[2J\n"); a.Failed != nil {
			t.Fatal(a.Failed)
		}
		a.Logger(a.Stderr).With("worker", "w").WithGroup("g").Warn("careful")
		a.Logger(a.Stderr).Info("as usual")
		a.Report(ending.Invalid("wrong \x1b[2J"))
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
	a := &Output{Stderr: printable.NewWriter(&out), Color: ColorAlways, LogLevel: "info", JSON: true}
	a.Logger(a.Stderr).Log(t.Context(), slog.LevelError, "failed")
	if strings.Contains(out.String(), "\x1b") || !strings.HasPrefix(out.String(), "{") {
		t.Errorf("%q", out.String())
	}
}

func TestAutoAsksForATerminal(t *testing.T) {
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if (&Output{Color: ColorAuto}).Coloured(file) {
		t.Error("a file is coloured")
	}
}
