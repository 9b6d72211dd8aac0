package report

import (
	"strings"
	"testing"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/output"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/progress"
)

func TestParkedRecordsColourTheEndAsWarning(t *testing.T) {
	for parked, colour := range map[int]string{0: progress.Green, 1: progress.Yellow} {
		var b strings.Builder
		out := output.Output{Stdout: &b, Color: output.ColorAlways}
		Sightings{}.PrintBehind(&out, "done\x1b[2J", parked)
		if got := b.String(); !strings.HasPrefix(got, colour+`done\x1b[2J`) || out.Failed != nil {
			t.Errorf("%d parked: %q, %v", parked, got, out.Failed)
		}
	}
}
