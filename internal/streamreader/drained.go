package streamreader

import (
	"slices"

	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/dynamill/dynamill/internal/stream/leases"
	"github.com/dynamill/dynamill/internal/stream/streamapi"
)

// nothingPending reports whether the plan leaves nothing to wait for.
func (f *follower) nothingPending() bool {
	return len(f.fleet.Plan.Waiting) == 0 && len(f.missing) == 0 && f.fleet.Plan.Vacant == 0
}

// allIdle reports whether every shard that any worker reads is open and empty. Only
// a worker that drains knows.
func (f *follower) allIdle() bool {
	if !f.fleet.OthersIdle(f.r.records.Load(), f.r.cfg.DrainPolls) {
		return false
	}
	for _, s := range f.running {
		if !s.Idle() {
			return false
		}
	}
	return true
}

// checkFinished reports whether the follower has no more to read, and the error with which it then ends.
func (f *follower) checkFinished() (bool, error) {
	if f.drain && f.drained {
		return true, f.skipped()
	}
	// The rows say when shards that other workers read are finished.
	unfinished := func(s streamapi.Shard) bool { return !f.fleet.Shards[s.ID].Finished() }
	if f.found.Status == streams.StreamStatusDisabled && len(f.running) == 0 && f.nothingPending() &&
		!slices.ContainsFunc(f.found.Shards, unfinished) {
		f.drained = true
		if f.drain {
			return true, f.skipped()
		}
		return true, ErrStreamEnded
	}
	return false, nil
}

func (f *follower) findSkipped() {
	busy := func(row leases.Lease) bool { return row.Owner != "" && !f.fleet.Expired(row) }
	for _, shard := range f.skips.Judge(f.found, f.fleet.Shards, busy) {
		f.r.cfg.Logger.Error("an open shard is skipped, because its lease says SHARD_END: its records are not applied",
			"shard", shard, "stream", f.r.cfg.StreamARN, "remedy", "delete this shard's row from the lease table before the stream "+
				"drops the records, which it does after 24 hours; nothing is applied twice")
	}
}

// skipped is the error of a drain that had to leave shards out; nil if it had not.
func (f *follower) skipped() error {
	if shards := f.skips.Shards(); len(shards) > 0 {
		return &SkippedError{Shards: shards}
	}
	return nil
}
