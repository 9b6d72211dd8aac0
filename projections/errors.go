package projections

import (
	"fmt"
	"strings"
)

// SetupError says that the engine cannot start: the table, its stream or one of dynamill's own
// tables is not as it must be.
type SetupError struct {
	Problem string // a sentence
	Remedy  string // what to do about it
	Err     error  // the cause, if another error was
}

func (e *SetupError) Error() string { return e.Problem + ": " + e.Remedy }

func (e *SetupError) Unwrap() error { return e.Err }

// RulesChangedError says that the rule file differs from the rules in force.
type RulesChangedError struct {
	StateTable       string
	Changed, Removed []string // rule names
}

func (e *RulesChangedError) Error() string {
	var what []string
	if len(e.Changed) > 0 {
		what = append(what, "changed: "+strings.Join(e.Changed, ", "))
	}
	if len(e.Removed) > 0 {
		what = append(what, "removed: "+strings.Join(e.Removed, ", "))
	}
	return fmt.Sprintf("the rule file differs from the rules in force on this table (%s): `dynamill plan` says what it would change, and "+
		"`dynamill replay` carries it out; "+
		"or restore the rules that state table %s knows", strings.Join(what, "; "), e.StateTable)
}
