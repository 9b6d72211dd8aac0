package streamreader

import "github.com/dynamill/dynamill/internal/stream/leases"

// findSkipped logs the shards that a complete list shows to be skipped.
func (f *follower) findSkipped() {
	busy := func(row leases.Lease) bool { return row.Owner != "" && !f.fleet.Expired(row) }
	for _, shard := range f.skips.Judge(f.found, f.fleet.Shards, busy) {
		f.r.cfg.Logger.Error("an open shard is skipped, because its lease says SHARD_END: its records are not applied",
			"shard", shard, "stream", f.r.cfg.StreamARN,
			"remedy",
			"delete this shard's row from the lease table before the stream drops the records, which it does after 24 hours; nothing is applied "+
				"twice")
	}
}

// skipped is the error of a drain that had to leave shards out; nil if it had not.
func (f *follower) skipped() error {
	if shards := f.skips.Shards(); len(shards) > 0 {
		return &SkippedError{Shards: shards}
	}
	return nil
}
