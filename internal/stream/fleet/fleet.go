// Package fleet is one worker's part in sharing a stream: when it reads the lease rows, which leases it holds and renews,
// how it seeks more shards, and how a worker becomes the lister. Package leases makes the plan. It calls the lease table only.
package fleet

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/dynamill/dynamill/internal/stream/leases"
	"github.com/dynamill/dynamill/internal/stream/streamapi"
)

// A worker may take takeFirst shards after a scan. If it has used that up and the next scan shows the same number of workers,
// it may take twice as many, up to takeMost. Workers that start together must see each other before all shards are gone.
const takeFirst, takeMost = 16, 1024

// Config names the stream that is shared, and this worker.
type Config struct {
	Store     leases.Store
	StreamARN string
	Worker    leases.Worker
	Drains    bool
	Logger    *slog.Logger
}

// Member is one worker's part in sharing a stream: what it sees of the leases, and
// which it holds. One goroutine uses it; the renewals have another.
type Member struct {
	Shards  map[string]leases.Lease // the rows of the stream's shards, as they are known
	Foreign map[string]leases.Lease // unfinished rows of another program that name no stream
	Plan    leases.Plan             // the last one
	Behind  bool                    // a shard that this worker does not read may be behind, or has no row yet

	cfg      Config
	rows     map[string]leases.Lease // all rows of the stream, by their keys
	changed  map[string]time.Time
	polls    pollBaselines
	drain    *drainDetector // nil: does not drain
	scans    scanSchedule
	workers  int // seen before the last scan
	takeMax  int // from one scan to the next
	takeLeft int
	failing  *streamapi.Backoff
	stalls   stallTracker
	random   *rand.Rand      // the worker's own numbers: the same name draws the same ones
	former   map[string]bool // the Runs found under this worker's name at first
	namesake bool            // another process of this worker's name has come since

	newsUnsent bool // this worker has changed something that others do not know

	mu      sync.Mutex
	held    map[string]*leases.Held // by the rows' keys: the stream's own row and the seeker's, too
	renewal context.CancelFunc      // nil: no goroutine renews yet
	wg      sync.WaitGroup
}

// New makes a member that has not seen a row yet.
func New(cfg Config) *Member {
	m := &Member{
		cfg: cfg, Shards: map[string]leases.Lease{}, rows: map[string]leases.Lease{}, changed: map[string]time.Time{}, polls: pollBaselines{},
		held: map[string]*leases.Held{}, takeMax: takeFirst, takeLeft: takeFirst, failing: streamapi.NewBackoff(cfg.Worker.Name + " scans"),
		stalls: stallTracker{shards: map[string]pausedShard{}},
		random: rand.New(rand.NewPCG(streamapi.NameHash(cfg.Worker.Name), 0)),
	}
	if cfg.Drains {
		m.drain = &drainDetector{checkpoints: map[string]string{}, others: pollBaselines{}}
	}
	return m
}

// Own is the stream's own row; zero if there is none.
func (m *Member) Own() leases.Lease { return m.rows[m.cfg.StreamARN] }

// See takes over all rows of the lease table as they were just read. It corrects the rows of this worker's own
// leases, which the worker may have written since.
func (m *Member) See(table []leases.Lease) {
	m.Shards, m.Foreign = make(map[string]leases.Lease, len(table)), map[string]leases.Lease{}
	var rows []leases.Lease
	for _, row := range table {
		switch {
		case row.Stream == m.cfg.StreamARN:
			rows = append(rows, row)
		case row.Stream == "" && !row.Finished():
			m.Foreign[row.Shard] = row
		}
	}
	if !m.scans.baselineRead {
		m.recordFormerRuns(rows)
	}
	read := make(map[string]bool, len(rows))
	for _, row := range rows {
		read[row.Shard] = true
		m.Note(row)
	}
	for id, h := range m.holding() {
		read[id], m.changed[id] = true, time.Now()
		m.set(h.Lease())
	}
	for id := range m.rows {
		if !read[id] {
			delete(m.rows, id)
			delete(m.changed, id)
			delete(m.polls, id)
		}
	}
	m.noteScan()
	if m.takeLeft > 0 || m.Plan.Workers != m.workers {
		m.takeMax = takeFirst
	} else {
		m.takeMax = min(2*m.takeMax, takeMost)
	}
	m.takeLeft, m.workers = m.takeMax, m.Plan.Workers
}

// recordFormerRuns remembers which processes had this worker's name before it began.
// It may take their leases. A later process of this name is a namesake.
func (m *Member) recordFormerRuns(rows []leases.Lease) {
	m.former = map[string]bool{}
	for _, row := range rows {
		m.former[row.Run] = m.former[row.Run] || row.Owner == m.cfg.Worker.Name
	}
}

func (m *Member) set(row leases.Lease) {
	m.rows[row.Shard] = row
	if row.OfShard() {
		m.Shards[row.Shard] = row
	}
}

// Note takes over a row as a call has just returned it. It records when this worker saw the row
// change, and whether a namesake wrote it.
func (m *Member) Note(now leases.Lease) {
	before := m.rows[now.Shard]
	m.set(now)
	if now.Owner == m.cfg.Worker.Name && now.Run != m.cfg.Worker.Run && !m.former[now.Run] {
		m.namesake = true
	}
	_, seen := m.changed[now.Shard]
	m.polls.observe(before, now)
	if m.drain != nil {
		m.drain.others.observe(before, now)
	}
	switch {
	case !seen && now.Finished():
		m.changed[now.Shard] = time.Time{} // long ago, as far as this worker knows
	case before.Shard == "" || before.Counter != now.Counter || before.Owner != now.Owner:
		m.changed[now.Shard] = time.Now()
		m.scanByExpiry(now)
	}
}

// Divide plans what this worker does next, and counts what it is to take. firstPlan reports whether the last scan's rows had no
// plan yet.
func (m *Member) Divide(busy map[string]bool) (plan leases.Plan, firstPlan bool) {
	in := m.input()
	in.Worker, in.Own, in.Leases, in.Busy, in.TakeMax = m.cfg.Worker.Name, m.Own(), m.Shards, busy, m.takeLeft
	in.Seekers = map[string]leases.Lease{}
	for _, row := range m.rows {
		if row.OfSeeker() {
			in.Seekers[row.Owner] = row
		}
	}
	m.Plan = leases.Divide(in)
	m.stalls.limit(&m.Plan, in)
	m.takeLeft -= len(m.Plan.Take)
	firstPlan, m.scans.rowsUnplanned = m.scans.rowsUnplanned, false
	return m.Plan, firstPlan
}

// NoteNews records that this worker has changed something that the other workers should scan for.
func (m *Member) NoteNews() { m.newsUnsent = true }

// Expired reports whether a lease's owner has not been heard of for a term.
func (m *Member) Expired(row leases.Lease) bool {
	return m.input().Expired(row)
}

// input holds what decides whether a lease has expired.
func (m *Member) input() leases.Input {
	return leases.Input{Now: m.scans.at, Term: m.cfg.Worker.Term, Changed: m.changed}
}

// OthersIdle reports whether other workers' shards were empty for several polls since any worker was last seen to apply
// records. Only a worker that drains knows, by rows read after it had applied what it has now.
func (m *Member) OthersIdle(done int64, polls int) bool {
	return m.drain != nil && m.drain.done == done &&
		m.allOthers(func(row leases.Lease) bool { return m.drain.others.empty(row, polls) })
}

// OthersCaughtUp reports whether the shards that other workers read were empty
// for several polls since this worker saw them first, or were read past a moment.
func (m *Member) OthersCaughtUp(polls int, moment time.Time) bool {
	return m.Plan.Vacant == 0 &&
		m.allOthers(func(row leases.Lease) bool { return m.polls.empty(row, polls) || row.Newest.After(moment) })
}

// allOthers reports whether a condition holds of each row whose shard is not finished and that this worker does not hold.
func (m *Member) allOthers(condition func(leases.Lease) bool) bool {
	held := m.holding()
	for id, row := range m.Shards {
		if held[id] == nil && !row.Finished() && !condition(row) {
			return false
		}
	}
	return true
}
