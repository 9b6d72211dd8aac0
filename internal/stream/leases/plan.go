package leases

import (
	"cmp"
	"hash/fnv"
	"maps"
	"slices"
	"time"
)

// Input is what a plan of leases depends on.
type Input struct {
	Worker  string
	Now     time.Time        // when the rows were last read, by this worker's own clock, as all times here
	Term    time.Duration    // this worker's own, and that of owners whose rows name none
	Own     Lease            // the stream's own row: its owner is alive, also without a shard
	Leases  map[string]Lease // the rows of the stream's shards
	Seekers map[string]Lease // the rows of workers that have less than their share, by worker
	// Changed is when a row's counter or owner was first seen to be what it is,
	// by shard, and for the stream's own row by its name. The write was before that.
	Changed map[string]time.Time
	Busy    map[string]bool // shards that this worker reads, or has not let go yet
	TakeMax int
}

// Expired reports whether the owner has not written for its own term, by this worker's clock. An owner stops by then.
func (in Input) Expired(l Lease) bool {
	return l.Owner != "" && in.Now.Sub(in.Changed[l.Shard]) >= in.TermOf(l)
}

// TermOf is how long the owner of a lease may write nothing.
func (in Input) TermOf(l Lease) time.Duration {
	if l.Term == 0 {
		return in.Term
	}
	return l.Term
}

// Plan says what this worker does next, so that every shard has one
// owner and the owners about as many shards each.
type Plan struct {
	Take    []Lease  // free, expired, or this worker's own from before: to be claimed
	Surplus bool     // this worker has more than its share, and a seeker has less
	Release []Lease  // what it releases of that now
	Seek    bool     // it has less than its share, and what is vacant is not enough
	Vacant  int      // shards that no worker reads, Take included
	Workers int      // that are seen to live, this one included
	Waiting []string // shards that wait for their parent
}

// Divide works out one division of the shards between the living workers, and returns this worker's part of it. Workers with
// the same view make the same division. A shard moves only from a worker that has two more than another, and only after
// the other one has shown, by a row, that it wants more: so balance is kept once it is found. A worker that has
// just read a shard to its end keeps the place for its first child. It is pure: same input, same plan.
func Divide(in Input) Plan {
	var plan Plan
	loads, first := in.living(), firstChildren(in.Leases)
	var vacant []Lease
	kept := 0
	keep := func(l Lease, owner string) {
		if held, lives := loads[owner]; lives {
			loads[owner] = append(held, l)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(in.Leases)) {
		l := in.Leases[id]
		gone, heir := in.Expired(l), in.heir(l, first)
		switch {
		case l.Finished():
			if first[id] == "" && in.justEnded(l) {
				keep(l, l.Owner) // the child is not listed yet
			}
		case !MayBeRead(l, in.Leases):
			plan.Waiting = append(plan.Waiting, id)
		case l.Owner == in.Worker && !in.Busy[id] && !gone:
			loads[in.Worker] = append(loads[in.Worker], l)
			plan.Take = append(plan.Take, l) // a claim whose answer was lost, or of the process before
		case in.Busy[id] && (l.Owner == "" || gone): // this worker has not let go of it yet: neither vacant nor part of its load
		case heir != "":
			if keep(l, heir); heir == in.Worker && len(plan.Take) < in.TakeMax {
				plan.Take = append(plan.Take, l)
			} else {
				kept++
			}
		case l.Owner == "" || gone:
			vacant = append(vacant, l)
		default:
			loads[l.Owner] = append(loads[l.Owner], l)
		}
	}
	plan.Vacant, plan.Workers = len(vacant)+len(plan.Take)+kept, len(loads)
	in.share(&plan, loads, vacant)
	return plan
}

// living returns an empty load for each worker that is seen to live.
func (in Input) living() map[string][]Lease {
	loads := map[string][]Lease{in.Worker: nil}
	for _, l := range slices.AppendSeq(slices.AppendSeq([]Lease{in.Own}, maps.Values(in.Leases)), maps.Values(in.Seekers)) {
		if l.Owner != "" && !l.Finished() && !in.Expired(l) {
			loads[l.Owner] = nil
		}
	}
	return loads
}

// firstChildren returns, by the parent, one of the children that have rows.
func firstChildren(leases map[string]Lease) map[string]string {
	first := make(map[string]string, len(leases))
	for id, l := range leases {
		if known := first[l.Parent]; l.Parent != "" && (known == "" || id < known) {
			first[l.Parent] = id
		}
	}
	return first
}

// heir is the worker that has just read the parent of a shard that had no owner yet;
// "" if there is none, or it is not the first child.
func (in Input) heir(l Lease, first map[string]string) string {
	parent := in.Leases[l.Parent]
	if l.Owner != "" || l.Counter != 0 || first[l.Parent] != l.Shard || !in.justEnded(parent) {
		return ""
	}
	return parent.Owner
}

// justEnded reports whether a shard was seen to end so short a time ago that
// its reader may not know its children yet.
func (in Input) justEnded(l Lease) bool {
	return l.Finished() && in.Now.Sub(in.Changed[l.Shard]) < min(in.Term/4, heirMost)
}

// heirMost bounds the time for which a child is left to the worker that has
// read its parent, which may have gone.
const heirMost = 3 * time.Second

// MayBeRead reports whether the shard's parent, if there is one, is finished for certain. A missing row proves nothing:
// it may have been made after the scan had passed its place.
func MayBeRead(l Lease, leases map[string]Lease) bool {
	if l.Unadopted && l.Checkpoint == TrimHorizon {
		return false // where the shard begins is not known yet, nor its parent
	}
	return l.Parent == "" || l.Orphan || l.Checkpoint != TrimHorizon || leases[l.Parent].Finished()
}

// share divides the vacant shards, and says what this worker gives or wants beyond them.
func (in Input) share(plan *Plan, loads map[string][]Lease, vacant []Lease) {
	workers := make([]string, 0, len(loads))
	total := len(vacant)
	for w, held := range loads {
		workers = append(workers, w)
		total += len(held)
	}
	// The workers that have the most keep the odd ones.
	slices.SortFunc(workers, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(loads[b]), len(loads[a])), cmp.Compare(a, b))
	})
	needs := make(map[string]int, len(workers))
	wanted := 0 // shards that seekers are to be given now
	var surplus []Lease
	for i, w := range workers {
		target, held := total/len(workers), loads[w]
		if i < total%len(workers) {
			target++
		}
		need := max(0, target-len(held))
		needs[w] = need
		if in.seeks(w) {
			wanted += min(need, max(1, len(held)))
		}
		if len(held) > target {
			surplus = append(surplus, held[target:]...)
		}
	}
	// The workers in need take turns at the vacant shards, and then at the surplus.
	mine := make([]bool, 0, total)
	for left := true; left; {
		left = false
		for _, w := range workers {
			if needs[w] > 0 {
				needs[w]--
				left, mine = true, append(mine, w == in.Worker)
			}
		}
	}
	in.take(plan, vacant, mine)
	for i, l := range surplus {
		if l.Owner == "" || l.Finished() {
			continue // its owner keeps the place for a child
		}
		place := i + len(vacant)
		plan.Seek = plan.Seek || mine[place]
		if l.Owner == in.Worker && wanted > 0 {
			plan.Surplus = true
			if place < wanted {
				plan.Release = append(plan.Release, l)
			}
		}
	}
}

// seeks reports whether a worker is seen to want more shards. It gets as many at a time as it has, at least one: it first
// shows that it can read them, and few remain without a reader if it dies.
func (in Input) seeks(worker string) bool {
	l, ok := in.Seekers[worker]
	return ok && !in.Expired(l)
}

// take plans to claim the vacant shards at this worker's places, and others that are vacant for long:
// their taker may be dead, or see another picture.
func (in Input) take(plan *Plan, vacant []Lease, mine []bool) {
	for _, first := range []bool{true, false} {
		for i, l := range vacant {
			if len(plan.Take) < in.TakeMax && mine[i] == first && (first || in.longVacant(l)) {
				plan.Take = append(plan.Take, l)
			}
		}
	}
}

// longVacant reports whether a vacant shard has been so for long. Workers come
// at different times, so that they do not all come at once.
func (in Input) longVacant(l Lease) bool {
	vacant := in.Now.Sub(in.Changed[l.Shard])
	if l.Owner != "" {
		vacant -= in.TermOf(l)
	}
	h := fnv.New32a()
	h.Write([]byte(in.Worker))
	h.Write([]byte(l.Shard))
	least := min(in.Term/4, vacantMost)
	return vacant >= least+least*time.Duration(h.Sum32()%16)/16
}

// vacantMost bounds the time for which a vacant shard is left to the worker whose place it
// is: every worker hears of it in half of that.
const vacantMost = 10 * time.Second
