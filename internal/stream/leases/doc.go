// Package leases says which worker reads which shard of a stream: the rows, the two
// stores that keep them, the pure plan that divides the shards between
// workers, and how long the owner of a lease may act under it. It
// knows nothing of streams and their records, and imports the AWS SDK's
// DynamoDB client only.
package leases

import (
	"errors"
	"fmt"
)

// ErrLost says that another process has written to a lease row that this one holds.
var ErrLost = errors.New("lease lost: another process reads this stream with the same lease table")

// ErrNamesake is an ErrLost: the other process has the same worker's name.
var ErrNamesake = fmt.Errorf("%w: under the same worker name (--worker), which only one process at a time may have", ErrLost)

// RowError says that a row cannot be understood. No retry can cure that.
type RowError struct{ err error }

func (e *RowError) Error() string { return e.err.Error() }
func (e *RowError) Unwrap() error { return e.err }

func permanentf(format string, args ...any) error {
	return &RowError{fmt.Errorf(format, args...)}
}
