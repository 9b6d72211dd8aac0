package document

import (
	"fmt"
	"strings"

	"github.com/dynamill/dynamill/internal/printable"
)

// Problem is one finding in a rule file.
type Problem struct {
	File         string
	Line, Column int    // from 1, the column in characters; 0 where the problem belongs to no place
	Source       string // the line
	Length       int    // how many characters the caret marks
	Code         string // e.g. "rule.unknown_field"
	Message      string
	Hint         string // what to do about it; "" if the message says it
	Example      string // lines of a rule file that the hint speaks of; "" if it speaks of none
	Warning      bool   // the file can be used as it is
}

// String shows the problem with its line, a caret below the place, and the hint.
func (p Problem) String() string {
	var b strings.Builder
	file, message := printable.Text(p.File), printable.Text(p.Message)
	if p.Warning {
		file = "warning: " + file
	}
	if p.Line == 0 {
		fmt.Fprintf(&b, "%s: %s: %s\n", file, p.Code, message)
	} else {
		fmt.Fprintf(&b, "%s:%d:%d: %s: %s\n", file, p.Line, p.Column, p.Code, message)
		fmt.Fprintf(&b, "%8d | %s\n", p.Line, printable.Lines(p.Source))
		fmt.Fprintf(&b, "%8s | %s\n", "", caretBelow(p.Source, p.Column-1, p.Length))
	}
	if p.Hint != "" {
		fmt.Fprintf(&b, "    hint: %s\n", printable.Text(p.Hint))
	}
	for line := range strings.Lines(p.Example) {
		fmt.Fprintf(&b, "          %s\n", printable.Text(strings.TrimSuffix(line, "\n")))
	}
	return b.String()
}

// caretBelow marks some characters of a line as it is shown, behind the first n: tabs stay tabs.
func caretBelow(line string, n, length int) string {
	before, marked := printable.Lines(firstOf(line, n)), printable.Lines(firstOf(line, n+length))
	var b strings.Builder
	for _, c := range before {
		if c == '\t' {
			b.WriteByte('\t')
		} else {
			b.WriteString(strings.Repeat(" ", printable.Width(string(c))))
		}
	}
	return b.String() + strings.Repeat("^", max(1, printable.Width(marked)-printable.Width(before)))
}

// firstOf returns the first n characters of a line, of which a byte that is no UTF-8 is one.
func firstOf(line string, n int) string {
	for i := range line {
		if n--; n < 0 {
			return line[:i]
		}
	}
	return line
}

// Problems is the error of a file: every problem of it, in the order of their places.
type Problems struct{ List []Problem }

// Error prints all problems.
func (p *Problems) Error() string {
	var b strings.Builder
	for i := range p.List {
		b.WriteString(p.List[i].String())
	}
	return strings.TrimSuffix(b.String(), "\n")
}
