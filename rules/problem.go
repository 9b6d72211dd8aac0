package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/rules/internal/spelling"
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

// Problems is the error that Load returns: every problem of a file, in the
// order of their places.
type Problems struct{ List []Problem }

// Error prints all problems.
func (p *Problems) Error() string {
	var b strings.Builder
	for i := range p.List {
		b.WriteString(p.List[i].String())
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// place is where something stands in the file.
type place struct {
	line, column, length int // from 1, in characters
}

// problemsMax is how many problems are collected: more are not read at once.
const problemsMax = 200

// findings collects the problems of one file, up to problemsMax.
type findings struct {
	file  string
	lines []string
	list  []Problem

	warnings []Problem
}

func (f *findings) add(at place, code, hint, message string, args ...any) {
	if len(f.list) < problemsMax {
		f.list = append(f.list, f.finding(at, code, hint, message, args...))
	}
}

// addExample is add for a hint that speaks of the example below it.
func (f *findings) addExample(at place, code, hint, example, message string, args ...any) {
	if len(f.list) < problemsMax {
		p := f.finding(at, code, hint, message, args...)
		p.Example = example
		f.list = append(f.list, p)
	}
}

// warn is add for a finding that does not keep the file from being used.
func (f *findings) warn(at place, code, hint, message string, args ...any) {
	if len(f.warnings) < problemsMax {
		p := f.finding(at, code, hint, message, args...)
		p.Warning = true
		f.warnings = append(f.warnings, p)
	}
}

func (f *findings) finding(at place, code, hint, message string, args ...any) Problem {
	p := Problem{File: f.file, Line: at.line, Column: at.column, Length: at.length, Code: code,
		Message: fmt.Sprintf(message, args...), Hint: hint}
	if at.line >= 1 && at.line <= len(f.lines) {
		p.Source = f.lines[at.line-1]
		left := utf8.RuneCountInString(p.Source) - (at.column - 1)
		p.Length = max(1, min(p.Length, left))
	}
	return p
}

// problems returns the problems, sorted by place; nil if there are none.
func (f *findings) problems() error {
	if len(f.list) == 0 {
		return nil
	}
	return &Problems{List: sortedByPlace(f.list)}
}

func sortedByPlace(list []Problem) []Problem {
	slices.SortStableFunc(list, func(a, b Problem) int {
		return cmp.Or(a.Line-b.Line, a.Column-b.Column)
	})
	return list
}

// didYouMean returns a hint that names the candidate nearest to word, or, if
// none is near, lists them; "" if there are none.
func didYouMean(word string, candidates []string) string {
	best, bestDistance := "", nearMax(word)+1
	for _, c := range candidates {
		if d := spelling.Distance(strings.ToLower(word), strings.ToLower(c)); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	if best != "" {
		return "did you mean " + best + "?"
	}
	const listedMax = 12
	switch {
	case len(candidates) == 0:
		return ""
	case len(candidates) > listedMax:
		return "there are " + strings.Join(candidates[:listedMax], ", ") + " and others"
	case len(candidates) == 1:
		return "there is only " + candidates[0]
	}
	return "there are " + strings.Join(candidates, ", ")
}

// nearMax is how many edits a misspelling of the word may be away.
func nearMax(word string) int { return len(word)/3 + 1 }

// near reports whether word could be a misspelling of name.
func near(word, name string) bool {
	return spelling.Distance(strings.ToLower(word), strings.ToLower(name)) <= nearMax(word)
}
