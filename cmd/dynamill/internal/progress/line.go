package progress

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/dynamill/dynamill/internal/printable"
)

const (
	barWidth = 20
	gap      = "  "
)

// Line is the state in one line of at most width columns. A line that is too long loses
// the least important parts first: the notes from the last on, the bar, the rate, the count.
func Line(s State, e Estimate, width int) string {
	count := printable.Grouped(s.Done)
	if s.Total > 0 && s.Done <= s.Total {
		about := ""
		if s.About {
			about = "about "
		}
		count += " of " + about + printable.Grouped(s.Total)
	}
	if s.Unit == "" {
		count = ""
	} else {
		count += " " + s.Unit
	}
	bar, percent, rate, left := "", "", "", ""
	if e.Percent >= 0 {
		percent = fmt.Sprintf("%.0f%%", e.Percent)
		full := min(barWidth, int(e.Percent*barWidth/100))
		bar = fmt.Sprintf("[%s%s] %s", strings.Repeat("#", full), strings.Repeat(".", barWidth-full), percent)
	}
	if s.Unit != "" {
		rate = printable.Grouped(int64(e.Rate+0.5)) + "/s"
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

// wideFirst is the first character that a terminal may show two columns wide (Hangul
// Jamo). Most that follow are narrow: a line that is too short does no harm, one that
// wraps does.
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
