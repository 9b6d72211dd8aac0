// Package ending says how a command ends: its exit code, and the text of its error for a terminal. It
// imports rules and projections, whose errors have exit codes of their own, and internal/printable.
package ending

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/rules"
)

// The exit codes. They mean the same in every command.
const (
	ExitDone = iota
	ExitFailed
	ExitInvalid
	ExitEnvironment
	ExitDrift     // is proven
	ExitUndecided // no drift is proven, and not everything was decided
)

// Failure is an ending with its exit code and the one sentence that says what is wrong and what to do.
type Failure struct {
	Code int
	Err  error
}

func (f *Failure) Error() string { return f.Err.Error() }
func (f *Failure) Unwrap() error { return f.Err }

// Invalid is a failure of what the user gave: rules, flags, arguments.
func Invalid(format string, args ...any) error {
	return &Failure{Code: ExitInvalid, Err: fmt.Errorf(format, args...)}
}

// Unsuited is a failure of the surroundings: table, stream, credentials, network.
func Unsuited(format string, args ...any) error {
	return &Failure{Code: ExitEnvironment, Err: fmt.Errorf(format, args...)}
}

// ExitCode classifies an error by its type.
func ExitCode(err error) int {
	known, ok := errors.AsType[*Failure](err)
	switch {
	case ok:
		return known.Code
	case errors.As(err, new(*rules.Problems)), errors.As(err, new(*projections.RulesChangedError)):
		return ExitInvalid
	case errors.As(err, new(*projections.SetupError)):
		return ExitEnvironment
	}
	return ExitFailed
}

// LaidOut is an error whose line breaks are its own: one of the flags' parser or of the configuration file's.
type LaidOut struct{ Err error }

func (e LaidOut) Error() string { return e.Err.Error() }
func (e LaidOut) Unwrap() error { return e.Err }

// Text shows an error. Line breaks beside the text of an error that it wraps, and between the Lines of an error that has
// such a method, are the program's own. All others stand in a value.
func Text(err error) string {
	var wrapped []error
	switch e := err.(type) { //nolint:errorlint // one error of a chain
	case LaidOut:
		return printable.Lines(e.Error())
	case interface{ Lines() []string }:
		lines := e.Lines()
		for i := range lines {
			lines[i] = printable.Text(lines[i])
		}
		return strings.Join(lines, "\n")
	case interface{ Unwrap() []error }:
		wrapped = e.Unwrap()
	case interface{ Unwrap() error }:
		wrapped = []error{e.Unwrap()}
	}
	var b strings.Builder
	text := err.Error()
	for _, inner := range wrapped {
		if inner == nil {
			continue
		}
		before, after, found := strings.Cut(text, inner.Error())
		if !found {
			continue
		}
		b.WriteString(between(before, b.Len() > 0, true) + Text(inner))
		text = after
	}
	return b.String() + between(text, b.Len() > 0, false)
}

// between shows what stands between the texts of two errors, or beside one.
func between(text string, behind, before bool) string {
	first, last := "", ""
	if behind && strings.HasPrefix(text, "\n") {
		first, text = "\n", text[1:]
	}
	if before && strings.HasSuffix(text, "\n") {
		last, text = "\n", text[:len(text)-1]
	}
	return first + printable.Text(text) + last
}
