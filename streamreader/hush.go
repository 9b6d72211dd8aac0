package streamreader

// hush tells who drains beside others when nobody applies anything any more. What one
// worker applies may write what another is still to read. So whenever anybody was seen
// to apply records, every shard has to be empty for several polls more.
type hush struct {
	done        int64             // records that this worker had applied when it last looked
	checkpoints map[string]string // as of the rows of that look
	others      polls             // of the shards that others read
	own         map[string]int    // polls of this worker's shards that do not count
}

// look takes over rows that were just read, when this worker had applied so many
// records. A nil hush does nothing.
func (h *hush) look(rows map[string]Lease, done int64, running map[string]*shardReader) {
	if h == nil {
		return
	}
	applied := done != h.done
	h.done = done
	for id, row := range rows {
		was, known := h.checkpoints[id]
		applied = applied || known && was != row.Checkpoint
		h.checkpoints[id] = row.Checkpoint
	}
	for id := range h.checkpoints {
		if _, ok := rows[id]; !ok {
			delete(h.checkpoints, id)
			delete(h.others, id)
		}
	}
	if !applied {
		return
	}
	for id, row := range rows {
		h.others[id] = baseline{polls: row.EmptyPolls, old: true}
	}
	clear(h.own)
	for id, s := range running {
		h.own[id] = s.snapshot().emptyPolls
	}
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
