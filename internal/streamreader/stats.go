package streamreader

import (
	"errors"
	"slices"
	"time"

	"github.com/dynamill/dynamill/internal/stream/leases"
	"github.com/dynamill/dynamill/internal/stream/shardread"
	"github.com/dynamill/dynamill/streamreader"
)

// Stats is the reader's state at one moment, and ShardStats how one shard stands.
type (
	Stats      = streamreader.Stats
	ShardStats = streamreader.ShardStats
)

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
