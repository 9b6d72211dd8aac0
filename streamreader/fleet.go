package streamreader

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/dynamill/dynamill/streamreader/internal/leases"
	"github.com/dynamill/dynamill/streamreader/internal/streamapi"
)

// takeFirst shards may be taken after one look at the leases, and twice as
// many after each next one that shows no other workers than the one before,
// up to takeMost: many workers that start together must see each other
// before all shards are gone.
const takeFirst, takeMost = 16, 1024

// fleet is one worker's part in sharing a stream: what it sees of the leases, and
// which it holds. All but the renewals is done by the follower's goroutine.
type fleet struct {
	cfg *Config

	own        Lease            // the stream's own row; zero if there is none
	seekers    map[string]Lease // by worker
	changed    map[string]time.Time
	polls      pollBaselines
	drain      *drainDetector // nil: does not drain
	plan       leases.Plan
	rowsLoaded bool // just now, and the loop has not used them yet
	scans      scanSchedule
	workers    int // seen before the last look
	takeMax    int // from one look to the next
	takeLeft   int
	failing    *streamapi.Backoff
	stalls     stallTracker
	random     *rand.Rand      // the worker's own numbers: the same name draws the same ones
	former     map[string]bool // the Runs found under this worker's name at first
	namesake   bool            // another process of this worker's name has come since

	newsUnsent bool // something was done that others should look at
	behind     bool // another worker's shard, as far as the rows tell

	mu       sync.Mutex
	held     map[string]*leases.Held // by the rows' keys: the stream's own row and the seeker's, too
	renewing map[string]bool
	renewal  context.CancelFunc // nil: no goroutine renews yet
	wg       sync.WaitGroup
}

func newFleet(cfg *Config, drains bool) *fleet {
	l := &fleet{
		cfg: cfg, renewing: map[string]bool{}, changed: map[string]time.Time{}, polls: pollBaselines{},
		held: map[string]*leases.Held{}, takeMax: takeFirst, takeLeft: takeFirst, failing: streamapi.NewBackoff(cfg.WorkerID + " scans"),
		stalls: stallTracker{shards: map[string]pausedShard{}},
		random: rand.New(rand.NewPCG(streamapi.NameHash(cfg.WorkerID), 0)),
	}
	if drains {
		l.drain = &drainDetector{checkpoints: map[string]string{}, others: pollBaselines{}}
	}
	return l
}

// see takes over the rows of the stream as they were just read, and puts
// those of this worker's leases right, which may have been written since.
func (l *fleet) see(before, now, seekers map[string]Lease, own *Lease) {
	was := l.own
	l.own = Lease{}
	if own != nil {
		l.own = *own
	}
	if !l.scans.baselineRead {
		l.recordFormerRuns(now)
	}
	if own != nil {
		l.date(was, *own)
	}
	l.seeSeekers(seekers)
	for id, row := range now {
		l.date(before[id], row)
	}
	for id, h := range l.holding() {
		switch row := h.Lease(); {
		case row.OfShard():
			now[id] = row
		case row.OfStream():
			row.Lost = l.own.Lost // other workers announce it in the row
			l.own = row
		}
		l.changed[id] = time.Now()
	}
	for id := range l.changed {
		if _, ok := now[id]; !ok && id != l.cfg.StreamARN && seekers[id].Shard == "" {
			delete(l.changed, id)
			delete(l.polls, id)
		}
	}
	l.rowsLoaded = true
	l.noteScan(now)
	if l.takeLeft > 0 || l.plan.Workers != l.workers {
		l.takeMax = takeFirst
	} else {
		l.takeMax = min(2*l.takeMax, takeMost)
	}
	l.takeLeft, l.workers = l.takeMax, l.plan.Workers
}

// recordFormerRuns remembers which processes had this worker's name before it began.
// What they have is its own to take; that of any other shows that two share the name.
func (l *fleet) recordFormerRuns(rows map[string]Lease) {
	l.former = map[string]bool{}
	for _, row := range rows {
		l.former[row.Run] = l.former[row.Run] || row.Owner == l.cfg.WorkerID
	}
	l.former[l.own.Run] = l.former[l.own.Run] || l.own.Owner == l.cfg.WorkerID
}

// date records when this worker saw a row change, and whether a namesake wrote it.
func (l *fleet) date(before, now Lease) {
	if now.Owner == l.cfg.WorkerID && now.Run != l.cfg.RunID && !l.former[now.Run] {
		l.namesake = true
	}
	_, seen := l.changed[now.Shard]
	l.polls.observe(before, now)
	if l.drain != nil {
		l.drain.others.observe(before, now)
	}
	switch {
	case !seen && now.Finished():
		l.changed[now.Shard] = time.Time{} // long ago, as far as this worker knows
	case before.Shard == "" || before.Counter != now.Counter || before.Owner != now.Owner:
		l.changed[now.Shard] = time.Now()
		l.scanByExpiry(now)
	}
}

// divide plans what this worker does next.
func (l *fleet) divide(rows map[string]Lease, busy map[string]bool) leases.Plan {
	in := l.input()
	in.Worker, in.Own, in.Leases, in.Seekers, in.Busy, in.TakeMax = l.cfg.WorkerID, l.own, rows, l.seekers, busy, l.takeLeft
	l.plan = leases.Divide(in)
	l.stalls.limit(&l.plan, in)
	return l.plan
}

// expired reports whether a lease's owner has not been heard of for a term.
func (l *fleet) expired(row Lease) bool {
	return l.input().Expired(row)
}

// input is what tells whose lease has expired.
func (l *fleet) input() leases.Input {
	return leases.Input{Now: l.scans.at, Term: l.cfg.LeaseTerm, Changed: l.changed}
}

// othersIdle reports whether the shards that other workers read were empty for
// several polls since any worker was last seen to apply records.
func (l *fleet) othersIdle(rows map[string]Lease, polls int) bool {
	held := l.holding()
	for id, row := range rows {
		if held[id] == nil && !row.Finished() && !l.drain.others.empty(row, polls) {
			return false
		}
	}
	return true
}

// othersCaughtUp reports whether the shards that other workers read were empty
// for several polls since this worker saw them first, or were read past a moment.
func (l *fleet) othersCaughtUp(rows map[string]Lease, polls int, moment time.Time) bool {
	held := l.holding()
	for id, row := range rows {
		if held[id] == nil && !row.Finished() && !l.polls.empty(row, polls) && !row.Newest.After(moment) {
			return false
		}
	}
	return l.plan.Vacant == 0
}
