package main

import (
	"errors"
	"fmt"

	"github.com/dynamill/dynamill/projections"
	"github.com/dynamill/dynamill/rules"
)

// The exit codes. They mean the same in every command. Commands that compare end
// with 4 where drift is proven, and with 5 where none is and not everything was decided.
const (
	exitDone        = 0
	exitFailed      = 1
	exitInvalid     = 2
	exitEnvironment = 3
	exitDrift       = 4
	exitUndecided   = 5
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
