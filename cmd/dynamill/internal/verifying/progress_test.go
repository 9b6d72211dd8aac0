package verifying

import (
	"fmt"
	"testing"
	"time"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/environment"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/progress"
	"github.com/dynamill/dynamill/internal/replay/verify"
)

func TestVerifyStateCountsScansThenDifferences(t *testing.T) {
	for want, p := range map[string]verify.Progress{
		"opening both tables  [....................] 0%  0 of about 300 items and rows  0/s  items 0  state rows 0": {},
		"scanning  [##########..........] 50%  150 of about 300 items and rows  0/s  items 50  state rows 100": {Phase: "scanning",
			Items: 50, Rows: 100},
		"scanning  400 items and rows  0/s  items 200  state rows 200": {Phase: "scanning", Items: 200,
			Rows: 200},
		"looking again  [#####...............] 25%  1 of 4 differences  0/s  drift 1  items 50  state rows 100": {Phase: "looking again",
			Items: 50, Rows: 100, Suspects: 4, Open: 3, Found: 1},
	} {
		w := &Watch{Message: "verifying", Counts: environment.Counts{Items: 100, StateItems: 200}}
		w.Note(p)
		var meter progress.Meter
		s := w.State()
		if got := progress.Line(s, meter.Add(time.Now(), s), 200); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if got := fmt.Sprint(s.Attributes[:2]); got != "[phase "+p.Phase+"]" {
			t.Errorf("the log has %s", got)
		}
	}
}
