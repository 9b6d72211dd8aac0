package followed

import (
	"slices"
	"sync"
	"time"

	"github.com/dynamill/dynamill/internal/health"
	"github.com/dynamill/dynamill/streamreader"
)

// Watch tells from several readings of the leases whether any process
// follows a stream. It is safe for concurrent use.
type Watch struct {
	mu    sync.Mutex
	watch health.Watch
	last  time.Time // zero before the first reading
}

// Observe notes one reading of a stream's leases.
func (w *Watch) Observe(leases []streamreader.Lease, stream string, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	leases = slices.DeleteFunc(slices.Clone(leases), func(l streamreader.Lease) bool { return l.Stream != stream })
	w.watch.Look(now, watchedRows(leases))
	w.last = now
}

// Unfollowed reports whether the readings show that no process follows the stream:
// no lease has an owner, or each owner was silent for longer than its term allows.
func (w *Watch) Unfollowed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.last.IsZero() && !anyAlive(w.watch.Owners(w.last))
}

const NoFollower = "no process applies the stream: start `dynamill run`"
