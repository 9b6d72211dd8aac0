// Package progress shows how far a long command is: one line with a bar on a terminal, a log line every ten seconds
// elsewhere. The pure half turns states into rate, percentage and time left (Meter), and these into a line that fits a
// terminal's width (Line). The other half keeps one line below what is logged (Screen, Start).
//
// It imports internal/pace and internal/printable: text from tables and files is escaped before it reaches a terminal. Only
// Screen writes control characters, and only to a terminal.
package progress

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/dynamill/dynamill/internal/printable"
)

// State is how far a command is at one moment.
type State struct {
	Message string // of the log line: "replaying"
	// Phase names the work at hand: "pass 1 of 4". The rate and the time left begin
	// anew with each phase.
	Phase string
	Done  int64
	Unit  string // of Done, in the plural: "items"
	Total int64  // of Done; 0: not known
	About bool   // Total is an estimate

	// Where no Total is known, one of these may say how much is left.
	Behind time.Duration // how old the newest applied change is; 0: nothing waits, or not known
	Share  float64       // the part that is done, from 0 to 1; 0: not known

	Notes      []string // further facts for the terminal, the most important first
	Attributes []any    // further facts for the log, as slog takes them
	Unchanged  bool     // a log line would repeat the one before
}

// Estimate is what two or more states tell.
type Estimate struct {
	Rate    float64       // of Done, per second
	Percent float64       // below 0: not known
	Left    time.Duration // 0: not known
}

const (
	window    = 30 * time.Second // over which rates are taken
	behindMin = 5 * time.Second  // DynamoDB rounds times down to the second, so a smaller lag cannot be measured
	leftMax   = 1000 * time.Hour // a longer time left is a guess
)

// Meter estimates from states. The zero value is ready.
type Meter struct {
	phase   string
	samples []sample // of the phase, oldest first
	behind  time.Duration
}

type sample struct {
	at     time.Time
	done   int64
	behind time.Duration
	share  float64
}

// Add takes a state at its time, and returns what is known then.
func (m *Meter) Add(at time.Time, s State) Estimate {
	if len(m.samples) > 0 && (s.Phase != m.phase || s.Done < m.samples[len(m.samples)-1].done) {
		m.samples, m.behind = nil, 0
	}
	m.phase = s.Phase
	m.behind = max(m.behind, s.Behind)
	m.samples = append(m.samples, sample{at, s.Done, s.Behind, s.Share})
	for len(m.samples) > 1 && at.Sub(m.samples[0].at) > window {
		m.samples = m.samples[1:]
	}
	first := m.samples[0]
	took := at.Sub(first.at).Seconds()
	growth := func(now, before float64) float64 {
		if took <= 0 {
			return 0
		}
		return (now - before) / took
	}
	e := Estimate{Rate: growth(float64(s.Done), float64(first.done)), Percent: -1}
	switch {
	case s.Total > 0 && s.Done <= s.Total: // an estimate that is exceeded tells nothing
		e.Percent = 100 * float64(s.Done) / float64(s.Total)
		e.Left = timeFor(float64(s.Total-s.Done), e.Rate)
	case s.Total > 0:
	case s.Behind >= behindMin:
		e.Percent = 100 * (1 - float64(s.Behind)/float64(m.behind))
		e.Left = timeFor(s.Behind.Seconds(), growth(first.behind.Seconds(), s.Behind.Seconds()))
	case s.Share > 0:
		e.Percent = 100 * min(s.Share, 1)
		e.Left = timeFor(1-s.Share, growth(s.Share, first.share))
	}
	return e
}

// timeFor is how long so much takes at a rate per second; 0 if that is not known.
func timeFor(left, rate float64) time.Duration {
	if rate <= 0 || left <= 0 || math.IsNaN(left) || left/rate > leftMax.Seconds() {
		return 0
	}
	return time.Duration(left / rate * float64(time.Second))
}

// Attributes are the state and the estimate for a log line.
func Attributes(s State, e Estimate) []any {
	found := append([]any(nil), s.Attributes...)
	if s.Total > 0 {
		found = append(found, "total", s.Total)
	}
	if s.Unit != "" {
		found = append(found, strings.ReplaceAll(s.Unit, " ", "_")+"_per_second", int64(e.Rate))
	}
	if e.Percent >= 0 {
		found = append(found, "percent", int64(e.Percent))
	}
	if e.Left > 0 {
		found = append(found, "seconds_left", int64(e.Left/time.Second))
	}
	return found
}

const (
	barWidth = 20
	gap      = "  "
)

// Line is the state in one line of at most width columns. A line that is too long loses the notes from the last on, then the bar,
// the rate, the count.
func Line(s State, e Estimate, width int) string {
	bar, count, percent, rate, left := "", "", "", "", ""
	if e.Percent >= 0 {
		percent = fmt.Sprintf("%.0f%%", e.Percent)
		full := min(barWidth, int(e.Percent*barWidth/100))
		bar = fmt.Sprintf("[%s%s] %s", strings.Repeat("#", full), strings.Repeat(".", barWidth-full), percent)
	}
	if s.Unit != "" {
		count, rate = printable.Grouped(s.Done), printable.Rounded(e.Rate)+"/s"
		if s.Total > 0 && s.Done <= s.Total {
			of := " of "
			if s.About {
				of = " of about "
			}
			count += of + printable.Grouped(s.Total)
		}
		count += " " + s.Unit
	}
	if e.Left > 0 {
		left = e.Left.Round(time.Second).String() + " left"
	}
	phase := printable.Text(s.Phase)
	notes := make([]string, len(s.Notes))
	for i, note := range s.Notes {
		notes[i] = printable.Text(note)
	}
	for n := len(notes); n >= 0; n-- {
		if line := joined(append([]string{phase, bar, count, rate, left}, notes[:n]...)); columns(line) <= width {
			return line
		}
	}
	for _, parts := range [][]string{{phase, percent, count, rate, left}, {phase, percent, count, left}, {phase, percent, left}} {
		if line := joined(parts); columns(line) <= width {
			return line
		}
	}
	return cut(joined([]string{phase, percent}), width)
}

func joined(parts []string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(parts), func(part string) bool { return part == "" }), gap)
}

// cut returns the beginning of a text that takes at most width columns.
func cut(text string, width int) string {
	used := 0
	for i, r := range text {
		if used += columnsOf(r); used > width {
			return text[:i]
		}
	}
	return text
}

// columns is how many columns of a terminal a printable text takes at most.
func columns(text string) (n int) {
	for _, r := range text {
		n += columnsOf(r)
	}
	return n
}

// wideFirst is the first character that a terminal may show two columns wide (Hangul Jamo). Most that follow are narrow: a line
// that is too short does no harm.
const wideFirst = '\u1100'

func columnsOf(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case r >= wideFirst:
		return 2
	}
	return 1
}
