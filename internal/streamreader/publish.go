package streamreader

import "maps"

// publish hands to Stats what it says of all shards.
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
	if at := f.fleet.ScannedAt(); at.After(v.listedAt) {
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
