package streamreader

import (
	"maps"
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

// view is what a follower shows of all shards. Reader.mu guards it.
type view struct {
	shards   map[string]*shardread.Reader
	waiting  map[string]bool // for their parents
	behind   bool            // a shard that this worker does not read
	finished int
	listedAt time.Time
	rows     []leases.Lease // of the shards that are not finished, by id
	left     time.Time      // of the shard that was furthest behind when the reader was stopped, the newest record done
	skipped  []string
}

// Stats returns the state at this moment. It is safe to call at any time.
func (r *Reader) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := r.view
	st := Stats{
		Records: r.records.Load(), LeaseMoves: r.moves.Load(),
		Open: len(v.shards), Waiting: len(v.waiting), Finished: v.finished, Skipped: v.skipped,
		LastProgress: v.listedAt,
		CaughtUp:     !v.listedAt.IsZero() && len(v.waiting) == 0 && !v.behind,
		Shards:       v.listShards(r.cfg.WorkerID),
		Lag:          shardread.Lag(v.left, 0),
	}
	first := true
	for _, s := range v.shards {
		p := s.Snapshot()
		st.Lag = max(st.Lag, shardread.Lag(p.Newest, int64(p.EmptyPolls)))
		st.OldestAge = max(st.OldestAge, p.OldestAge())
		if p.EmptyPolls < r.cfg.DrainPolls && !p.Newest.After(r.began) {
			st.CaughtUp = false
		}
		if first || p.At.Before(st.LastProgress) {
			st.LastProgress, first = p.At, false
		}
	}
	return st
}

// listShards joins what is read here with what the rows say of the rest.
func (v *view) listShards(worker string) []ShardStats {
	all := make([]ShardStats, 0, len(v.rows))
	for _, row := range v.rows {
		shard := ShardStats{ID: row.Shard, Owner: row.Owner, Waiting: v.waiting[row.Shard], Lag: shardread.Lag(row.Newest, row.EmptyPolls)}
		if s := v.shards[row.Shard]; s != nil {
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
	rows := make([]leases.Lease, 0, len(f.fleet.Shards))
	for _, l := range f.fleet.Shards {
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

func (f *follower) publish() {
	v := view{
		behind: !f.allListed() || !f.fleet.OthersCaughtUp(f.r.cfg.DrainPolls, f.began), listedAt: f.listedAt,
		shards: f.fleet.GivenBack(), waiting: map[string]bool{}, rows: f.unfinished(), skipped: f.skips.Shards(),
	}
	maps.Copy(v.shards, f.running) // a shard that no worker can read must show, too
	for _, id := range f.fleet.Plan.Waiting {
		v.waiting[id] = true
	}
	v.finished = len(f.fleet.Shards) - len(v.rows)
	if at := f.fleet.HeardAt(); at.After(v.listedAt) {
		v.listedAt = at
	}
	f.fleet.Behind = v.behind
	f.r.mu.Lock()
	defer f.r.mu.Unlock()
	f.r.view = v
}

// allListed reports whether every shard has a row: of all that the stream had
// at first, and of the children of every one that is finished.
func (f *follower) allListed() bool {
	for id, l := range f.fleet.Shards {
		if l.Finished() && len(f.children[id]) == 0 {
			return false
		}
		for _, child := range l.Children {
			if _, made := f.fleet.Shards[child]; !made {
				return false
			}
		}
	}
	return f.allMade || f.fleet.Lists() && !f.initialListing
}
