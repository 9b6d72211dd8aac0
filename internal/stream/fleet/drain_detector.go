package fleet

import (
	"maps"
	"sync/atomic"

	"github.com/dynamill/dynamill/internal/stream/leases"
	"github.com/dynamill/dynamill/internal/stream/shardread"
)

// drainDetector finds out, for a worker that drains, when no worker applies records any more. A batch may write records that
// another worker is still to read, so after each batch every shard has to be empty for several more polls. The worker
// counts its own batches itself (follower.applies); those of other workers show in the rows.
type drainDetector struct {
	done        int64                        // records that this worker had applied at its last scan
	checkpoints map[string]string            // as of that scan
	mine        map[string]*shardread.Reader // the shards that this worker read then
	others      pollBaselines                // of the shards that other workers read
}

// ObserveDrain takes over, for a worker that drains, the rows that were just read when it had applied so many
// records. It raises applies if another worker has applied records since the last scan.
func (m *Member) ObserveDrain(done int64, running map[string]*shardread.Reader, applies *atomic.Int64) {
	d, rows := m.drain, m.Shards
	if d == nil {
		return
	}
	byMe, byOthers := done != d.done, false
	d.done = done
	for id, row := range rows {
		was, known := d.checkpoints[id]
		if known && was != row.Checkpoint && !d.wrote(row, running[id]) {
			byOthers = true
		}
		d.checkpoints[id] = row.Checkpoint
	}
	gone := func(id string) bool { return rows[id].Shard == "" }
	maps.DeleteFunc(d.checkpoints, func(id, _ string) bool { return gone(id) })
	maps.DeleteFunc(d.others, func(id string, _ pollBaseline) bool { return gone(id) })
	d.mine = maps.Clone(running)
	if byOthers {
		applies.Add(1)
	}
	if !byMe && !byOthers {
		return
	}
	for id, row := range rows {
		d.others[id] = pollBaseline{polls: row.EmptyPolls, outdated: true}
	}
}

// wrote reports whether this worker wrote a row's checkpoint: the shard's reader at the
// last scan is the one that is there now, or it ended with this checkpoint.
func (d *drainDetector) wrote(row leases.Lease, now *shardread.Reader) bool {
	s := d.mine[row.Shard]
	return s != nil && (s == now || s.Held.Lease().Checkpoint == row.Checkpoint)
}

// pollBaselines says, by shard, from when on the empty polls in the rows count.
type pollBaselines map[string]pollBaseline

// pollBaseline is the number of a row's EmptyPolls that do not count, because they
// were made before the first scan of this worker.
type pollBaseline struct {
	polls    int64
	outdated bool // the row may have been written long before; the owner's next write is the baseline
}

// observe takes over a row, whose last known state was before.
func (p pollBaselines) observe(before, now leases.Lease) {
	switch base, known := p[now.Shard]; {
	case !known:
		p[now.Shard] = pollBaseline{polls: now.EmptyPolls, outdated: true}
	case base.outdated && before.Counter != now.Counter:
		p[now.Shard] = pollBaseline{polls: now.EmptyPolls}
	case now.EmptyPolls < base.polls:
		p[now.Shard] = pollBaseline{}
	}
}

// empty reports whether a shard was empty for so many polls that count.
func (p pollBaselines) empty(row leases.Lease, polls int) bool {
	return row.EmptyPolls-p[row.Shard].polls >= int64(polls)
}
