package streamreader

import (
	"maps"
	"slices"
	"time"

	"github.com/dynamill/dynamill/streamreader/internal/leases"
	"github.com/dynamill/dynamill/streamreader/internal/shardread"
)

// A worker may reach the lease table and not the stream. By its renewals it
// would keep for ever what other workers could read. After a while without an answer
// it gives the work back, and pauses, so that other workers come first. If no other worker
// is there, it is its own again after the pause.
//
// pauseTerms is how long a worker leaves alone what it has given back.
const pauseTerms = 6

// stallTracker remembers which calls to the stream had no answer.
type stallTracker struct {
	lists     time.Time // since when lists fail; zero if the last one did not
	mayListAt time.Time // when this worker may be the one that lists again
	shards    map[string]pausedShard
	since     time.Time // the last shard was given back; zero if one has answered since then
}

// pausedShard is one that was given back and that no other worker has taken.
type pausedShard struct {
	until  time.Time // when it may be taken again
	reader *shardread.Reader
}

// failedList counts a list that failed, and reports whether it is time that another worker tries.
func (t *stallTracker) failedList(term time.Duration) bool {
	if t.lists.IsZero() {
		t.lists = time.Now()
	}
	return time.Since(t.lists) >= term
}

// recordRelease notes a shard that did not answer.
func (t *stallTracker) recordRelease(s *shardread.Reader, term time.Duration) {
	t.since = time.Now()
	t.shards[s.Info.ID] = pausedShard{until: t.since.Add(pauseTerms * term), reader: s}
}

// resume lets the new reader of a shard start where the former one has given up.
func (t *stallTracker) resume(s *shardread.Reader) {
	p, ok := t.shards[s.Info.ID]
	delete(t.shards, s.Info.ID)
	if ok {
		s.ResumeFrom(p.reader)
	}
}

// recordAnswer notes when a shard answered.
func (t *stallTracker) recordAnswer(at time.Time) {
	if at.After(t.since) {
		t.since = time.Time{}
	}
}

// limit takes from a plan what this worker should leave alone. While no shard
// has answered it, it tries one, after the pause; which may be one of another worker.
func (t *stallTracker) limit(plan *leases.Plan, in leases.Input) {
	maps.DeleteFunc(t.shards, func(id string, _ pausedShard) bool {
		l, ok := in.Leases[id]
		return !ok || l.Finished() || l.Owner != "" && l.Owner != in.Worker
	})
	pausing := func(l Lease) bool { return in.Now.Before(t.shards[l.Shard].until) }
	plan.Take = slices.DeleteFunc(plan.Take, pausing)
	switch {
	case t.since.IsZero():
	case len(in.Busy) > 0, in.Now.Sub(t.since) < pauseTerms*in.Term:
		plan.Take, plan.Seek = nil, false
	case len(plan.Take) > 0:
		plan.Take, plan.Seek = plan.Take[:1], false
	}
}
