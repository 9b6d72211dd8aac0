// Package rules loads the rule file of a program that follows a table:
//
//	//go:embed dynamill.yaml
//	var ruleFile []byte
//
//	set, err := rules.Load("dynamill.yaml", ruleFile)
//
// Load finds every problem of the file at once, each with its place, a code and what to do about it. A
// Set is what dynamill.Follow and dynamill.NewHandler are given. docs/rules.md describes the file.
//
// The rule language itself is internal/rules, and the kinds of rules belong to the engine,
// internal/projections. This package imports both and calls no AWS.
package rules

import (
	"errors"

	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/rules"
)

// Set is a rule file without problems. It is immutable and safe for concurrent use.
type Set struct {
	Table    string    // the table that the file names; "" if it names none
	Warnings []Problem // of a file that can be used and is probably not meant so, in the order of their places

	filename, text string
}

// Load parses and checks a rule file. filename is for the problems only. The error is a *Problems.
func Load(filename string, src []byte) (*Set, error) {
	set, err := rules.Load(filename, src, projections.Kinds)
	if err != nil {
		return nil, AsProblems(err)
	}
	return &Set{Table: set.Table.Name, Warnings: listed(set.Warnings()), filename: filename, text: set.Text()}, nil
}

// AsProblems returns an error of the engine or the rule language as a *Problems where problems of a rule file
// caused it, as those that only the table's key types show. Any other error stays as it is.
func AsProblems(err error) error {
	if found := new(rules.Problems); errors.As(err, &found) {
		return &Problems{List: listed(found.List), err: err}
	}
	return err
}

// Filename is the name that Load was given.
func (s *Set) Filename() string { return s.filename }

// Text is the rule file.
func (s *Set) Text() string { return s.text }

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
func (p Problem) String() string { return rules.Problem(p).String() }

// Problems is the error that Load returns: every problem of a file, in the order of their places.
type Problems struct {
	List []Problem

	err error
}

// Error prints all problems.
func (p *Problems) Error() string { return p.err.Error() }

// Unwrap returns the cause.
func (p *Problems) Unwrap() error { return p.err }

func listed(all []rules.Problem) []Problem {
	list := make([]Problem, len(all))
	for i, p := range all {
		list[i] = Problem(p)
	}
	return list
}
