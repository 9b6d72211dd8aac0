package progress

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dynamill/dynamill/internal/printable"
)

// second is a state at a second after the start.
type second struct {
	at int
	State
}

func TestMeterEstimatesFromStates(t *testing.T) {
	items := func(phase string, done, total int64) State { return State{Phase: phase, Done: done, Total: total} }
	behind := func(lag time.Duration) State { return State{Behind: lag} }
	share := func(share float64) State { return State{Share: share} }
	for _, c := range []struct {
		name   string
		states []second
		want   Estimate
	}{
		{"one state has no rate", []second{{0, items("a", 50, 100)}}, Estimate{Percent: 50}},
		{"two states at the same time have no rate", []second{{0, items("a", 0, 100)}, {0, items("a", 50, 100)}}, Estimate{Percent: 50}},
		{"a total gives percent and time left", []second{{0, items("a", 0, 100)}, {5, items("a", 50, 100)}}, Estimate{10, 50, 5 * time.Second}},
		{"no total, only a rate", []second{{0, items("a", 0, 0)}, {5, items("a", 50, 0)}}, Estimate{10, -1, 0}},
		{"a total that is exceeded is no total", []second{{0, items("a", 0, 40)}, {5, items("a", 50, 40)}}, Estimate{10, -1, 0}},
		{"done", []second{{0, items("a", 0, 100)}, {5, items("a", 100, 100)}}, Estimate{20, 100, 0}},
		{"it stands still", []second{{0, items("a", 50, 100)}, {5, items("a", 50, 100)}}, Estimate{0, 50, 0}},
		{"the rate forgets what is long ago", []second{{0, items("a", 0, 1000)}, {100, items("a", 500, 1000)}, {110, items("a", 600, 1000)}},
			Estimate{10, 60, 40 * time.Second}},
		{"a phase begins anew", []second{{0, items("a", 900, 1000)}, {5, items("b", 0, 100)}, {6, items("b", 10, 100)}},
			Estimate{10, 10, 9 * time.Second}},
		{"a count that falls begins anew", []second{{0, items("a", 900, 1000)}, {5, items("a", 0, 100)}, {6, items("a", 10, 100)}},
			Estimate{10, 10, 9 * time.Second}},
		{"the lag shrinks", []second{{0, behind(time.Minute)}, {2, behind(40 * time.Second)}, {3, behind(30 * time.Second)}},
			Estimate{0, 50, 3 * time.Second}},
		{"the lag grows", []second{{0, behind(30 * time.Second)}, {2, behind(60 * time.Second)}}, Estimate{0, 0, 0}},
		{"a lag of seconds is none", []second{{0, behind(4 * time.Second)}, {2, behind(3 * time.Second)}}, Estimate{0, -1, 0}},
		{"a share", []second{{0, share(0.25)}, {5, share(0.5)}}, Estimate{0, 50, 10 * time.Second}},
		{"too long to tell", []second{{0, items("a", 0, math.MaxInt64)}, {5, items("a", 1, math.MaxInt64)}}, Estimate{0.2, 0, 0}},
	} {
		var m Meter
		var got Estimate
		for _, s := range c.states {
			got = m.Add(time.Unix(int64(s.at), 0), s.State)
		}
		if math.Abs(got.Rate-c.want.Rate) > 1e-9 || math.Abs(got.Percent-c.want.Percent) > 1e-9 ||
			got.Left.Round(time.Millisecond) != c.want.Left {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestAttributesHoldWhatIsKnown(t *testing.T) {
	for _, c := range []struct {
		s    State
		e    Estimate
		want string
	}{
		{State{}, Estimate{Percent: -1}, "[]"},
		{State{Attributes: []any{"a", 1}, Unit: "items and rows", Total: 9}, Estimate{2.5, 40, 90 * time.Second},
			"[a 1 total 9 items_and_rows_per_second 2 percent 40 seconds_left 90]"},
	} {
		if got := fmt.Sprint(Attributes(c.s, c.e)); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
	shared := make([]any, 2, 10)
	s := State{Attributes: shared, Unit: "items"}
	if first := Attributes(s, Estimate{Rate: 1, Percent: -1}); !slices.Equal(first, Attributes(s, Estimate{Rate: 1, Percent: -1})) ||
		len(s.Attributes) != 2 {
		t.Error("the state's attributes were changed")
	}
}

// Whatever is shown, the line fits its width, holds no control character, and begins
// with the phase.
func TestLineFitsEveryWidth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := State{
			Phase: rapid.String().Draw(t, "phase"), Unit: rapid.SampledFrom([]string{"", "items"}).Draw(t, "unit"),
			Done: rapid.Int64Min(0).Draw(t, "done"), Total: rapid.Int64Min(0).Draw(t, "total"), About: rapid.Bool().Draw(t, "about"),
			Notes: rapid.SliceOf(rapid.String()).Draw(t, "notes"),
		}
		e := Estimate{
			Rate: rapid.Float64Range(0, 1e9).Draw(t, "rate"), Percent: rapid.Float64Range(-1, 100).Draw(t, "percent"),
			Left: time.Duration(rapid.Int64Range(0, int64(leftMax)).Draw(t, "left")),
		}
		width := rapid.IntRange(0, 300).Draw(t, "width")
		line := Line(s, e, width)
		if columns(line) > width {
			t.Errorf("%q takes %d columns of %d", line, columns(line), width)
		}
		for _, r := range line {
			if r < ' ' || r == 0x7f {
				t.Errorf("%q holds a control character", line)
			}
		}
	})
}

func TestLineLeavesOutWhatMattersLeast(t *testing.T) {
	s := State{Phase: "replaying", Done: 1000, Unit: "items", Total: 2000, About: true, Notes: []string{"3 of 8 pieces", "5 write units"}}
	e := Estimate{Rate: 100, Percent: 50, Left: 10 * time.Second}
	for width, want := range map[int]string{
		200: "replaying  [##########..........] 50%  1,000 of about 2,000 items  100/s  10s left  3 of 8 pieces  5 write units",
		100: "replaying  [##########..........] 50%  1,000 of about 2,000 items  100/s  10s left  3 of 8 pieces",
		90:  "replaying  [##########..........] 50%  1,000 of about 2,000 items  100/s  10s left",
		65:  "replaying  50%  1,000 of about 2,000 items  100/s  10s left",
		55:  "replaying  50%  1,000 of about 2,000 items  10s left",
		30:  "replaying  50%  10s left",
		18:  "replaying  50%",
		4:   "repl",
		0:   "",
	} {
		if got := Line(s, e, width); got != want {
			t.Errorf("%d columns:\ngot  %q\nwant %q", width, got, want)
		}
	}
	wide := State{Phase: "日本語"}
	if got := Line(wide, Estimate{Percent: -1}, 5); got != "日本" {
		t.Errorf("%q, want two characters of two columns", got)
	}
}

func TestGroupedPartsThousands(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1000: "-1,000", -999: "-999", 1234567: "1,234,567"} {
		if got := printable.Grouped(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}
