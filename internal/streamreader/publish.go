package streamreader

import "github.com/dynamill/dynamill/internal/stream/shardread"

// publish hands to Stats what it says of all shards.
func (f *follower) publish() {
	waiting := map[string]bool{}
	for _, id := range f.fleet.Plan.Waiting {
		waiting[id] = true
	}
	others := f.allListed() && f.fleet.OthersCaughtUp(f.leases, f.r.cfg.DrainPolls, f.began)
	f.fleet.Behind = !others
	rows := f.unfinished()
	f.r.mu.Lock()
	f.r.state.rows = rows
	f.r.state.behind = !others
	f.r.state.waiting, f.r.state.finished, f.r.state.listedAt = waiting, len(f.leases)-len(rows), f.listedAt
	if at := f.fleet.ScannedAt(); at.After(f.listedAt) {
		f.r.state.listedAt = at
	}
	f.r.mu.Unlock()
	f.publishRunning()
}

// allListed reports whether every shard has a row: of all that the stream had
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
	return f.allMade || f.fleet.Lists() && !f.initialListing
}

// publishRunning hands the shards that are read to Stats.
func (f *follower) publishRunning() {
	shards := make(map[string]*shardread.Reader, len(f.running))
	for id, s := range f.running {
		shards[id] = s
	}
	for id, s := range f.fleet.GivenBack() { // a shard that no worker can read must show
		if shards[id] == nil {
			shards[id] = s
		}
	}
	f.r.mu.Lock()
	defer f.r.mu.Unlock()
	f.r.state.shards = shards
}
