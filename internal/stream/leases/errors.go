package leases

import (
	"errors"
	"fmt"
)

// ErrLost says that another process has written to a lease row that this one holds.
var ErrLost = errors.New("lease lost: another process has changed or deleted its row")

// ErrEvicted is an ErrLost: the owner was taken off, and no worker has claimed the shard since.
var ErrEvicted error = evicted{}

type evicted struct{}

func (evicted) Error() string {
	return "lease evicted: the lister or a count of the table took the shard from its owner; a worker will claim it anew"
}
func (evicted) Unwrap() error { return ErrLost }

// ErrNamesake is an ErrLost: the other process has the same worker's name.
var ErrNamesake = fmt.Errorf("%w: under the same worker name (--worker), which only one process at a time may have", ErrLost)

// PermanentError is an error that no retry can cure: a row that cannot be understood, for example.
type PermanentError struct{ Err error }

func (e *PermanentError) Error() string { return e.Err.Error() }
func (e *PermanentError) Unwrap() error { return e.Err }

func permanentf(format string, args ...any) error {
	return &PermanentError{fmt.Errorf(format, args...)}
}
