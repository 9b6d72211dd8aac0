package registry

import (
	"fmt"
	"strings"
)

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

// ErrEpochMoved is returned by Process when another process has registered
// newer rules. The records are not done; the process must stop and be started
// again with the new rule file.
var ErrEpochMoved error = epochMovedError{}

type epochMovedError struct{}

func (epochMovedError) Error() string {
	return "another process has registered newer rules for this table: restart with the current rule file"
}

// StopReading tells a stream reader that trying again is of no use.
func (epochMovedError) StopReading() bool { return true }
