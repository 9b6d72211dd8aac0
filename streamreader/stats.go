package streamreader

import (
	"errors"
	"slices"
	"time"

	"github.com/dynamill/dynamill/internal/stream/leases"
	"github.com/dynamill/dynamill/internal/stream/shardread"
)

// Stats is the reader's state at one moment: of the shards that it reads
// itself, where nothing else is said.
type Stats struct {
	Records int64 // records done since New
	Open    int   // shards that a goroutine reads now
	Waiting int   // shards of the stream that wait for their parent
	// Finished counts the stream's shards that are done to their end, by any worker.
	Finished int
	// Lag is the age of the newest record done in the shard that is furthest
	// behind; 0 when every shard is caught up, or nothing was read yet. While the
	// reader does not run it is that of the shards that it read when it was stopped.
	// DynamoDB floors the time of creation to the second.
	Lag time.Duration
	// OldestAge is the age of the oldest record that is not done, in the shard where it is
	// greatest; 0 when nothing waits. Between two pages, and while the stream does not answer,
	// it is an upper bound: the age of the newest record done.
	OldestAge time.Duration
	// CaughtUp reports whether every shard, by any worker, was read either to its end, as far
	// as several empty polls can tell, or past the moment at which reading
	// began: what the stream held before is done.
	CaughtUp bool
	// LastProgress is when the shard that has made no progress for the longest
	// time last did: a batch done, or a poll that found nothing. Without open
	// shards it is the time of the last list of shards; zero before the first.
	LastProgress time.Time
	// Shards are the stream's shards that are not finished, by id; none while
	// the reader does not run.
	Shards []ShardStats
	// Skipped are shards that are open, or were when this reader found them, although
	// their leases say SHARD_END, so that no worker reads them. Only a reader that lists the
	// stream's shards knows of them: one of those that share the stream, or one that drains.
	Skipped []string
	// LeaseMoves counts, since New, the shards that this reader began to read
	// and those that it gave away or lost before their end.
	LeaseMoves int64
}

// ShardStats is how one shard that is not finished stands, as this reader sees
// it: its own shards as they are, others as their rows last said.
type ShardStats struct {
	ID      string
	Owner   string // the worker that reads it; "" for none, or for one that was not heard of for a lease's term
	Mine    bool   // this reader reads it
	Waiting bool   // for its parent: no worker may read it yet
	// Lag is the age of the newest record done; 0 if nothing waited at the last
	// poll, or nothing was read yet.
	Lag time.Duration
	// OldestAge is the age of the oldest record that is not done, as in Stats; 0 of a shard of another reader.
	OldestAge    time.Duration
	LastProgress time.Time // of a shard of this reader's own; else zero
}

// readerState is what Stats is made of, guarded by Reader.mu.
type readerState struct {
	running  bool
	began    time.Time
	records  int64
	shards   map[string]*shardread.Reader
	waiting  map[string]bool // for their parents
	behind   bool            // a shard that this worker does not read
	finished int
	listedAt time.Time
	rows     []leases.Lease // of the shards that are not finished, by id
	left     time.Time      // of the shard that was furthest behind when the reader was stopped, the newest record done
	skipped  []string
	moves    int64
}

// Stats returns the state at this moment. It is safe to call at any time.
func (r *Reader) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	st := Stats{
		Records:      r.state.records,
		Open:         len(r.state.shards),
		Waiting:      len(r.state.waiting),
		Finished:     r.state.finished,
		LastProgress: r.state.listedAt,
		CaughtUp:     !r.state.listedAt.IsZero() && len(r.state.waiting) == 0 && !r.state.behind,
	}
	st.LeaseMoves, st.Skipped = r.state.moves, r.state.skipped
	st.Shards = r.state.listShards(r.cfg.WorkerID)
	st.Lag = shardread.Lag(r.state.left, 0)
	first := true
	for _, s := range r.state.shards {
		p := s.Snapshot()
		st.Lag = max(st.Lag, shardread.Lag(p.Newest, int64(p.EmptyPolls)))
		st.OldestAge = max(st.OldestAge, p.OldestAge())
		if p.EmptyPolls < r.cfg.DrainPolls && !p.Newest.After(r.state.began) {
			st.CaughtUp = false
		}
		if first || p.At.Before(st.LastProgress) {
			st.LastProgress, first = p.At, false
		}
	}
	return st
}

// listShards joins what is read here with what the rows say of the rest.
func (st *readerState) listShards(worker string) []ShardStats {
	all := make([]ShardStats, 0, len(st.rows))
	for _, row := range st.rows {
		shard := ShardStats{ID: row.Shard, Owner: row.Owner, Waiting: st.waiting[row.Shard], Lag: shardread.Lag(row.Newest, row.EmptyPolls)}
		if s := st.shards[row.Shard]; s != nil {
			p := s.Snapshot()
			shard.Owner, shard.Mine, shard.Waiting = worker, true, false
			shard.Lag, shard.LastProgress, shard.OldestAge = shardread.Lag(p.Newest, int64(p.EmptyPolls)), p.At, p.OldestAge()
		}
		all = append(all, shard)
	}
	return all
}

// unfinished returns the rows of the shards that are not finished. A silent owner counts as none.
func (f *follower) unfinished() []leases.Lease {
	rows := make([]leases.Lease, 0, len(f.leases))
	for _, l := range f.leases {
		if l.Finished() {
			continue
		}
		if f.fleet.Expired(l) {
			l.Owner = ""
		}
		rows = append(rows, l)
	}
	slices.SortFunc(rows, leases.CompareShards)
	return rows
}

// countGone counts a shard that this worker gave away or lost before its end.
func (f *follower) countGone(e endedShard) {
	if errors.Is(e.err, ErrLeaseLost) || !e.held.Lease().Finished() {
		f.r.countMove()
	}
}

func (r *Reader) countMove() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.moves++
}

func (r *Reader) countDone(records int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.records += int64(records)
}

// done is how many records were applied.
func (r *Reader) done() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state.records
}
