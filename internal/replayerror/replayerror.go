// Package replayerror has the errors of a replay by whose names a state machine decides: aws-lambda-go
// reports an error by the name of its type. It imports no other room.
package replayerror

import (
	"fmt"
	"strings"
)

// ReplayStuckError says that of the pieces that are left, all that were tried have failed. A state machine
// knows it by its name: no retry helps.
type ReplayStuckError struct {
	Source string
	Pieces []string
}

func (e *ReplayStuckError) Error() string {
	const namesMax = 10
	named := strings.Join(e.Pieces[:min(len(e.Pieces), namesMax)], ", ")
	if len(e.Pieces) > namesMax {
		named += ", ..."
	}
	return fmt.Sprintf("%d pieces of the %s are left, and those that were tried failed again and again: %s; the function's log says why. "+
		"Once that is repaired, another replay resumes there", len(e.Pieces), e.Source, named)
}

// DamagedFileError says that a file of an export is missing or damaged. A state machine
// knows it by its name: a retry would read the file again from its beginning, for nothing.
type DamagedFileError struct{ Err error }

func (e *DamagedFileError) Error() string { return e.Err.Error() }
func (e *DamagedFileError) Unwrap() error { return e.Err }
