package document

import (
	"cmp"
	"fmt"
	"slices"
	"unicode/utf8"
)

// Place is where something stands in the file.
type Place struct {
	Line, Column, Length int // from 1, in characters
}

// problemsMax is how many problems are collected: more are not read at once.
const problemsMax = 200

// Findings collects the problems of one file, and its warnings: up to problemsMax of each.
type Findings struct {
	file  string
	lines []string
	list  []Problem
	more  int // problems beyond those in the list

	warnings     []Problem
	moreWarnings int
}

// Add adds a problem.
func (f *Findings) Add(at Place, code, hint, message string, args ...any) {
	f.AddExample(at, code, hint, "", message, args...)
}

// AddExample is Add for a hint that speaks of the example below it.
func (f *Findings) AddExample(at Place, code, hint, example, message string, args ...any) {
	if len(f.list) == problemsMax {
		f.more++
		return
	}
	p := f.finding(at, code, hint, message, args...)
	p.Example = example
	f.list = append(f.list, p)
}

// Warn is Add for a finding that does not keep the file from being used.
func (f *Findings) Warn(at Place, code, hint, message string, args ...any) {
	if len(f.warnings) == problemsMax {
		f.moreWarnings++
		return
	}
	p := f.finding(at, code, hint, message, args...)
	p.Warning = true
	f.warnings = append(f.warnings, p)
}

func (f *Findings) finding(at Place, code, hint, message string, args ...any) Problem {
	p := Problem{File: f.file, Line: at.Line, Column: at.Column, Length: at.Length, Code: code,
		Message: fmt.Sprintf(message, args...), Hint: hint}
	if at.Line >= 1 && at.Line <= len(f.lines) {
		p.Source = f.lines[at.Line-1]
		left := utf8.RuneCountInString(p.Source) - (at.Column - 1)
		p.Length = max(1, min(p.Length, left))
	}
	return p
}

// Err returns the findings that keep the file from being used, sorted by place, as a *Problems; nil if there are none. The last one says
// how many more there are.
func (f *Findings) Err() error {
	if len(f.list) == 0 {
		return nil
	}
	return &Problems{List: f.listed(f.list, f.more, false)}
}

// Warnings returns the other findings in the same way.
func (f *Findings) Warnings() []Problem { return f.listed(f.warnings, f.moreWarnings, true) }

func (f *Findings) listed(list []Problem, more int, warnings bool) []Problem {
	slices.SortStableFunc(list, func(a, b Problem) int {
		return cmp.Or(a.Line-b.Line, a.Column-b.Column)
	})
	if more == 0 {
		return list
	}
	return append(slices.Clip(list), Problem{File: f.file, Code: "file.more", Hint: "correct these first, then check the file again",
		Message: fmt.Sprintf("%d more are not listed: %d are listed at once", more, problemsMax), Warning: warnings})
}
