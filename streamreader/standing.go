package streamreader

import (
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// settled reports whether the plan leaves nothing to wait for.
func (f *follower) settled() bool {
	return len(f.waiting()) == 0 && len(f.missing) == 0 && f.fleet.settled()
}

// allIdle reports whether every shard that any worker reads is open and empty. Only
// a worker that drains can tell.
func (f *follower) allIdle() bool {
	hush := f.fleet.hush
	if hush == nil || hush.done != f.r.done() { // the rows were read before that was applied
		return false
	}
	for _, s := range f.running {
		if !s.idle() {
			return false
		}
	}
	return f.fleet.othersIdle(f.leases, f.r.cfg.DrainPolls)
}

// over reports whether there is nothing left to follow.
func (f *follower) over() (bool, error) {
	if f.drain && f.drained {
		return true, f.skipped()
	}
	// Of shards that others read, the rows tell when they are finished.
	if f.found.status == streams.StreamStatusDisabled && len(f.running) == 0 && f.settled() && f.allFinished() {
		f.drained = true
		if f.drain {
			return true, f.skipped()
		}
		return true, ErrStreamEnded
	}
	return false, nil
}

func (f *follower) allFinished() bool {
	for _, s := range f.found.shards {
		if !f.leases[s.id].Finished() {
			return false
		}
	}
	return true
}

// publish tells Stats what it wants to know of all shards.
func (f *follower) publish() {
	finished, waiting := 0, len(f.waiting())
	for _, l := range f.leases {
		if l.Finished() {
			finished++
		}
	}
	others := f.allListed() && f.fleet.othersCaughtUp(f.leases, f.r.cfg.DrainPolls, f.began)
	f.fleet.behind = !others
	rows := f.sharedShards()
	f.r.mu.Lock()
	f.r.state.rows = rows
	f.r.state.behind = !others
	f.r.state.waiting, f.r.state.finished, f.r.state.listedAt = waiting, finished, f.listedAt
	if f.fleet.looks.at.After(f.listedAt) {
		f.r.state.listedAt = f.fleet.looks.at
	}
	f.r.mu.Unlock()
	f.publishRunning()
}

// allListed reports whether the rows tell of every shard: of all that the stream had
// at first, and of the children of every one that is finished.
func (f *follower) allListed() bool {
	for id, l := range f.leases {
		if l.Finished() && len(f.children[id]) == 0 {
			return false
		}
		for _, child := range l.Children {
			if _, made := f.leases[child]; !made {
				return false
			}
		}
	}
	return f.allMade || f.fleet.lists() && !f.fresh
}

// waiting are the shards that wait for their parent.
func (f *follower) waiting() []string {
	return f.fleet.plan.Waiting
}

// publishRunning tells Stats which shards are read.
func (f *follower) publishRunning() {
	shards := make(map[string]*shardReader, len(f.running))
	for id, s := range f.running {
		shards[id] = s
	}
	for id, p := range f.fleet.silence.shards { // a shard that no worker can read must show
		if shards[id] == nil {
			shards[id] = p.reader
		}
	}
	f.r.mu.Lock()
	defer f.r.mu.Unlock()
	f.r.state.shards = shards
}
