package fleet

import (
	"maps"
	"slices"
	"time"

	"github.com/dynamill/dynamill/internal/stream/leases"
	"github.com/dynamill/dynamill/internal/stream/shardread"
)

// PauseTerms is for how many terms a worker leaves alone the work that it gave back because the stream does not answer it.
// Its renewals would otherwise keep for ever what other workers could read.
const PauseTerms = 6

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

// GiveBack notes that a shard was released because it did not answer.
func (m *Member) GiveBack(s *shardread.Reader) {
	now := time.Now()
	m.stalls.since = now
	m.stalls.shards[s.Info.ID] = pausedShard{until: now.Add(PauseTerms * m.cfg.Worker.Term), reader: s}
}

// GivenBack are the former readers of shards that were given back and that no other worker has taken, by shard.
func (m *Member) GivenBack() map[string]*shardread.Reader {
	readers := map[string]*shardread.Reader{}
	for id, p := range m.stalls.shards {
		readers[id] = p.reader
	}
	return readers
}

// Resume lets the new reader of a shard start where the former one has given up.
func (m *Member) Resume(s *shardread.Reader) {
	p, ok := m.stalls.shards[s.Info.ID]
	delete(m.stalls.shards, s.Info.ID)
	if ok {
		s.ResumeFrom(p.reader)
	}
}

// NoteAnswer notes when a shard answered.
func (m *Member) NoteAnswer(at time.Time) {
	if at.After(m.stalls.since) {
		m.stalls.since = time.Time{}
	}
}

// limit removes from a plan what this worker should leave alone: shards that it gave back during the last PauseTerms terms.
// From then until a shard answers, it takes nothing while it reads shards or the pause lasts, and then one shard. If it has
// none to take, it may still seek another worker's.
func (t *stallTracker) limit(plan *leases.Plan, in leases.Input) {
	maps.DeleteFunc(t.shards, func(id string, _ pausedShard) bool {
		l, ok := in.Leases[id]
		return !ok || l.Finished() || l.Owner != "" && l.Owner != in.Worker
	})
	pausing := func(l leases.Lease) bool { return in.Now.Before(t.shards[l.Shard].until) }
	plan.Take = slices.DeleteFunc(plan.Take, pausing)
	switch {
	case t.since.IsZero():
	case len(in.Busy) > 0, in.Now.Sub(t.since) < PauseTerms*in.Term:
		plan.Take, plan.Seek = nil, false
	case len(plan.Take) > 0:
		plan.Take, plan.Seek = plan.Take[:1], false
	}
}
