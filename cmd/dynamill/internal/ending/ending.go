package ending

import (
	"errors"
	"fmt"

	"github.com/dynamill/dynamill/projections"
	"github.com/dynamill/dynamill/rules"
)

// The exit codes. They mean the same in every command. Commands that compare end
// with 4 where drift is proven, and with 5 where none is and not everything was decided.
const (
	ExitDone        = 0
	ExitFailed      = 1
	ExitInvalid     = 2
	ExitEnvironment = 3
	ExitDrift       = 4
	ExitUndecided   = 5
)

// Failure is an ending with its exit code and the one sentence that says what
// is wrong and what to do.
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
	var (
		known    *Failure
		problems *rules.Problems
		changed  *projections.RulesChangedError
		setup    *projections.SetupError
	)
	switch {
	case errors.As(err, &known):
		return known.Code
	case errors.As(err, &problems), errors.As(err, &changed):
		return ExitInvalid
	case errors.As(err, &setup):
		return ExitEnvironment
	}
	return ExitFailed
}
