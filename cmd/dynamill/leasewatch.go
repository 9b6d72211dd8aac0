package main

import (
	"slices"
	"sync"
	"time"

	"github.com/dynamill/dynamill/internal/health"
	"github.com/dynamill/dynamill/internal/stream/leases"
)

// leaseWatch tells from several readings of the leases whether any process
// follows a stream. It is safe for concurrent use.
type leaseWatch struct {
	mu    sync.Mutex
	watch health.Watch
	last  time.Time // zero before the first reading
}

// observe notes one reading of a stream's leases.
func (w *leaseWatch) observe(rows []leases.Lease, stream string, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	rows = slices.DeleteFunc(slices.Clone(rows), func(l leases.Lease) bool { return l.Stream != stream })
	w.watch.Look(now, watchedRows(rows))
	w.last = now
}

// unfollowed reports whether the readings show that no process follows the stream:
// no lease has an owner, or each owner was silent for longer than its term allows.
func (w *leaseWatch) unfollowed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.last.IsZero() && !anyAlive(w.watch.Owners(w.last))
}

const noFollower = "no process applies the stream: start `dynamill run`"
