package streamreader

import (
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
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

// over reports whether there is nothing left to follow.
func (f *follower) over() (bool, error) {
	if f.drain && f.drained {
		return true, f.skipped()
	}
	// The rows say when shards that other workers read are finished.
	if f.found.Status == streams.StreamStatusDisabled && len(f.running) == 0 && f.nothingPending() && f.allFinished() {
		f.drained = true
		if f.drain {
			return true, f.skipped()
		}
		return true, ErrStreamEnded
	}
	return false, nil
}

func (f *follower) allFinished() bool {
	for _, s := range f.found.Shards {
		if !f.fleet.Shards[s.ID].Finished() {
			return false
		}
	}
	return true
}
