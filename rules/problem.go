package rules

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
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
}

// String shows the problem with its line, a caret below the place, and the hint.
func (p Problem) String() string {
	var b strings.Builder
	if p.Line == 0 {
		fmt.Fprintf(&b, "%s: %s: %s\n", p.File, p.Code, p.Message)
	} else {
		fmt.Fprintf(&b, "%s:%d:%d: %s: %s\n", p.File, p.Line, p.Column, p.Code, p.Message)
		fmt.Fprintf(&b, "%8d | %s\n", p.Line, p.Source)
		fmt.Fprintf(&b, "%8s | %s%s\n", "", indentOf(p.Source, p.Column-1), strings.Repeat("^", max(1, p.Length)))
	}
	if p.Hint != "" {
		fmt.Fprintf(&b, "    hint: %s\n", p.Hint)
	}
	return b.String()
}

// indentOf makes a blank as wide as the first n characters of the line: tabs stay tabs.
func indentOf(line string, n int) string {
	var b strings.Builder
	for _, c := range line {
		if n == 0 {
			break
		}
		n--
		if c == '\t' {
			b.WriteByte('\t')
		} else {
			b.WriteByte(' ')
		}
	}
	return b.String()
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

// problemsMax is how many problems are collected: nobody reads more at once.
const problemsMax = 200

// findings collects the problems of one file, up to problemsMax.
type findings struct {
	file  string
	lines []string
	list  []Problem
}

func (f *findings) add(at place, code, hint, message string, args ...any) {
	if len(f.list) == problemsMax {
		return
	}
	p := Problem{File: f.file, Line: at.line, Column: at.column, Length: at.length, Code: code,
		Message: fmt.Sprintf(message, args...), Hint: hint}
	if at.line >= 1 && at.line <= len(f.lines) {
		p.Source = f.lines[at.line-1]
		left := utf8.RuneCountInString(p.Source) - (at.column - 1)
		p.Length = max(1, min(p.Length, left))
	}
	f.list = append(f.list, p)
}

// problems returns what was found, sorted by place; nil if nothing was.
func (f *findings) problems() error {
	if len(f.list) == 0 {
		return nil
	}
	slices.SortStableFunc(f.list, func(a, b Problem) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return &Problems{List: f.list}
}

// didYouMean returns a hint that names the candidate nearest to word, or, if
// none is near, lists them; "" if there are none.
func didYouMean(word string, candidates []string) string {
	best, bestDistance := "", nearMax(word)+1
	for _, c := range candidates {
		if d := distance(strings.ToLower(word), strings.ToLower(c)); d < bestDistance {
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
	return distance(strings.ToLower(word), strings.ToLower(name)) <= nearMax(word)
}

// distance is the number of single-character edits between two short words.
func distance(a, b string) int {
	const comparedMax = 64
	if len(a) > comparedMax || len(b) > comparedMax {
		return comparedMax
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
