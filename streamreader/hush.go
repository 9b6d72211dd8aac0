package streamreader

import (
	"maps"
	"sync/atomic"
)

// hush tells a worker that drains beside others when no worker applies anything any
// more. The batch of one worker may write records that another is still to read. So
// after each batch, by any worker, every shard has to be empty for several polls more.
// The worker counts its own batches itself (follower.applies), so they cost it no look
// at the rows.
type hush struct {
	done        int64                   // records that this worker had applied when it last looked
	checkpoints map[string]string       // as of the rows of that look
	mine        map[string]*shardReader // the shards that this worker read then
	others      polls                   // of the shards that others read
}

// look takes over rows that were just read, when this worker had applied so many
// records. It raises applies if another worker has applied records since the last
// look. A nil hush does nothing.
func (h *hush) look(rows map[string]Lease, done int64, running map[string]*shardReader, applies *atomic.Int64) {
	if h == nil {
		return
	}
	byMe, byOthers := done != h.done, false
	h.done = done
	for id, row := range rows {
		was, known := h.checkpoints[id]
		if known && was != row.Checkpoint && !h.wrote(row, running[id]) {
			byOthers = true
		}
		h.checkpoints[id] = row.Checkpoint
	}
	for id := range h.checkpoints {
		if _, ok := rows[id]; !ok {
			delete(h.checkpoints, id)
			delete(h.others, id)
		}
	}
	h.mine = maps.Clone(running)
	if byOthers {
		applies.Add(1)
	}
	if !byMe && !byOthers {
		return
	}
	for id, row := range rows {
		h.others[id] = baseline{polls: row.EmptyPolls, old: true}
	}
}

// wrote reports whether this worker wrote a row's checkpoint: its reader, which was
// there at the last look, is the one that is there now, or it ended with this checkpoint.
func (h *hush) wrote(row Lease, now *shardReader) bool {
	s := h.mine[row.Shard]
	return s != nil && (s == now || s.held.Lease().Checkpoint == row.Checkpoint)
}

// polls say from when on the empty polls that rows tell of count.
type polls map[string]baseline

// baseline is how many of a row's EmptyPolls do not count, as they were made
// before this worker looked.
type baseline struct {
	polls int64
	old   bool // as the row said, which may have been written long before; what the owner writes next counts them all
}

// date takes over what is new in a row.
func (p polls) date(before, now Lease) {
	switch base, known := p[now.Shard]; {
	case !known:
		p[now.Shard] = baseline{polls: now.EmptyPolls, old: true}
	case base.old && before.Counter != now.Counter:
		p[now.Shard] = baseline{polls: now.EmptyPolls}
	case now.EmptyPolls < base.polls:
		p[now.Shard] = baseline{}
	}
}

// empty reports whether a shard was empty for so many polls that count.
func (p polls) empty(row Lease, n int) bool {
	return row.EmptyPolls-p[row.Shard].polls >= int64(n)
}
