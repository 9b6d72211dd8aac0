package streamreader

import (
	"errors"
	"fmt"
	"strings"
)

// ErrStreamEnded says that the stream is disabled and was read to its end:
// whatever the table's items go through now, no record of it will come.
var ErrStreamEnded = errors.New("the stream is disabled and read to its end: changes of the table are no longer recorded")

// SkippedError says that open shards were not read, because their leases say
// SHARD_END. Drain returns it when everything else is done.
type SkippedError struct {
	Shards []string
}

func (e *SkippedError) Error() string {
	return fmt.Sprintf("the leases of open shards say SHARD_END, so their records are skipped: %s", strings.Join(e.Shards, ", "))
}
