package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/dynamill/dynamill/projections"
	"github.com/dynamill/dynamill/rules"
)

// The exit codes. They mean the same in every command. (4, drift found, belongs
// to commands that compare.)
const (
	exitDone        = 0
	exitFailed      = 1
	exitInvalid     = 2
	exitEnvironment = 3
	exitDrift       = 4
)

// failure is an ending with its exit code and the one sentence that says what
// is wrong and what to do.
type failure struct {
	code int
	err  error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// invalid is a failure of what the user gave: rules, flags, arguments.
func invalid(format string, args ...any) error {
	return &failure{code: exitInvalid, err: fmt.Errorf(format, args...)}
}

// unsuited is a failure of the surroundings: table, stream, credentials, network.
func unsuited(format string, args ...any) error {
	return &failure{code: exitEnvironment, err: fmt.Errorf(format, args...)}
}

// exitCode classifies an error by its type.
func exitCode(err error) int {
	var (
		known    *failure
		problems *rules.Problems
		changed  *projections.RulesChangedError
		setup    *projections.SetupError
	)
	switch {
	case errors.As(err, &known):
		return known.code
	case errors.As(err, &problems), errors.As(err, &changed):
		return exitInvalid
	case errors.As(err, &setup):
		return exitEnvironment
	}
	return exitFailed
}

// report writes the error where people look for it and returns its exit code.
// Rule problems are a list with source lines and carets: they stand as they are.
func report(stderr io.Writer, err error) int {
	var problems *rules.Problems
	if errors.As(err, &problems) {
		fmt.Fprintln(stderr, problems.Error())
	} else {
		fmt.Fprintf(stderr, "dynamill: %v\n", err)
	}
	return exitCode(err)
}
