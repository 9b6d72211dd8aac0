package streamreader

import "github.com/dynamill/dynamill/internal/stream/leases"

// ErrLeaseLost says that another process has written to a lease row that this
// one holds. That ends the reading of one shard.
var ErrLeaseLost = leases.ErrLost

// ErrNamesake is an ErrLeaseLost: another process runs under this one's
// WorkerID. It ends the reader that finds it: the one that was there first, or
// the one that wakes beside its successor.
var ErrNamesake = leases.ErrNamesake

// Checkpoints keeps how far each shard is done, and which worker reads it: NewLeaseTable makes one.
type Checkpoints = leases.Store

// NewLeaseTable returns the leases in the table of that name, one row a shard. Checkpoints
// say what one state table knows, so each state table has a lease table of its
// own. Load creates the table, on demand, if it does not exist.
func NewLeaseTable(client leases.Client, tableName string) Checkpoints {
	return leases.NewTable(client, tableName)
}
