package registry

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
