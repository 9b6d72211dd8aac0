package streamreader

import (
	"maps"
	"slices"
	"time"

	"github.com/dynamill/dynamill/streamreader/internal/leases"
	"github.com/dynamill/dynamill/streamreader/internal/shardread"
)

// A worker may reach the lease table and not the stream. By its renewals it
// would keep, for ever, what others could do: after a while without an answer
// it gives the work back, and pauses, so that others come first. If nobody else
// is there, it is its own again after the pause.
const (
	// pauseTerms is how long a worker leaves alone what it has given back.
	pauseTerms = 6
)

// silence is what a fleet's worker remembers of a stream that did not answer.
type silence struct {
	lists   time.Time // since when lists fail; zero if the last one did not
	standAt time.Time // when this worker may be the one that lists again
	shards  map[string]pausedShard
	since   time.Time // the last shard was given back; zero if one has answered since then
}

// pausedShard is one that was given back and that nobody else has taken.
type pausedShard struct {
	until  time.Time // when it may be taken again
	reader *shardread.Reader
}

// failedList counts a list that failed, and reports whether it is time that another worker tries.
func (q *silence) failedList(term time.Duration) bool {
	if q.lists.IsZero() {
		q.lists = time.Now()
	}
	return time.Since(q.lists) >= term
}

// gaveBack notes a shard that did not answer.
func (q *silence) gaveBack(s *shardread.Reader, term time.Duration) {
	q.since = time.Now()
	q.shards[s.Info.ID] = pausedShard{until: q.since.Add(pauseTerms * term), reader: s}
}

// resume lets the reader of a shard go on where its former one, since which
// nobody has written the shard's row, has given up: what that one knew shows
// for how long the shard was not read.
func (q *silence) resume(s *shardread.Reader) {
	p, ok := q.shards[s.Info.ID]
	delete(q.shards, s.Info.ID)
	if ok {
		s.ResumeFrom(p.reader)
	}
}

// heard notes when a shard answered.
func (q *silence) heard(at time.Time) {
	if at.After(q.since) {
		q.since = time.Time{}
	}
}

// curb takes from a plan what this worker should leave alone. While no shard
// has answered it, it tries one, after the pause; which may be one of another worker.
func (q *silence) curb(plan *leases.Plan, in leases.Input, asked bool) {
	maps.DeleteFunc(q.shards, func(id string, _ pausedShard) bool {
		l, ok := in.Leases[id]
		return !ok || l.Finished() || l.Owner != "" && l.Owner != in.Worker
	})
	pausing := func(l Lease) bool { return in.Now.Before(q.shards[l.Shard].until) }
	plan.Take, plan.Ask = slices.DeleteFunc(plan.Take, pausing), slices.DeleteFunc(plan.Ask, pausing)
	switch {
	case q.since.IsZero():
	case asked, len(in.Busy) > 0, in.Now.Sub(q.since) < pauseTerms*in.Term:
		plan.Take, plan.Ask = nil, nil
	case len(plan.Take) > 0:
		plan.Take, plan.Ask = plan.Take[:1], nil
	default:
		plan.Ask = plan.Ask[:min(1, len(plan.Ask))]
	}
}
