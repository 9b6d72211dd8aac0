package streamreader

import (
	"cmp"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"github.com/dynamill/dynamill/internal/guard"
)

// leaseInput is what a plan of leases depends on.
type leaseInput struct {
	worker string
	now    time.Time // by this worker's own clock, as all times here
	term   time.Duration
	own    Lease            // the stream's own row: its owner is alive, also without a shard
	leases map[string]Lease // the rows of the stream's shards
	// changed is when a row's counter or owner was first seen to be what it is,
	// by shard, and for the stream's own row by its name. The write was before that.
	changed map[string]time.Time
	busy    map[string]bool // shards that this worker reads, or has not let go yet
	takeMax int
	askMax  int // shards that have been asked for and not handed over included
}

// expired reports whether the owner has written nothing for a term. Only this
// worker's clock is asked: what others take for the time does not matter.
func (in leaseInput) expired(l Lease) bool {
	return l.Owner != "" && in.now.Sub(in.changed[l.Shard]) >= in.term
}

// leasePlan says what this worker does next, so that every shard has one
// owner and the owners about as many shards each.
type leasePlan struct {
	take    []Lease  // nobody's, expired, or this worker's own from before: to be claimed
	ask     []Lease  // of owners that have more than their share
	vacant  int      // shards that nobody reads, these included
	workers int      // that are seen to live, this one included
	waiting []string // shards that wait for their parent
}

// planLeases works out one division of the shards between the workers that
// are seen to live, and returns this worker's part of it. Workers with
// the same view make the same division, so that they do not run after the same
// shards; a worker that nobody sees yet counts itself in. A shard moves only
// from one who has two more than another, so that balance is kept once it is
// found. It is pure: same input, same plan.
func planLeases(in leaseInput) leasePlan {
	var plan leasePlan
	loads := in.living()
	var vacant []Lease
	pending := 0
	for _, id := range slices.Sorted(maps.Keys(in.leases)) {
		l := in.leases[id]
		gone := in.expired(l)
		switch {
		case l.Finished():
		case !mayBeRead(l, in.leases):
			plan.waiting = append(plan.waiting, id)
		case l.Owner == in.worker && !in.busy[id] && !gone:
			loads[in.worker] = append(loads[in.worker], l)
			plan.take = append(plan.take, l) // a claim whose answer was lost, or of the process before
		case l.Owner == "" || gone:
			if !in.busy[id] {
				vacant = append(vacant, l)
			}
		case l.Next != "":
			if l.Next == in.worker {
				pending++
			}
			loads[l.Next] = append(loads[l.Next], l)
		default:
			loads[l.Owner] = append(loads[l.Owner], l)
		}
	}
	plan.vacant, plan.workers = len(vacant)+len(plan.take), len(loads)
	in.share(&plan, loads, vacant, in.askMax-pending)
	return plan
}

// living returns an empty load for each worker that is seen to live, or waits for a shard.
func (in leaseInput) living() map[string][]Lease {
	loads := map[string][]Lease{in.worker: nil}
	see := func(l Lease) {
		if l.Owner == "" || l.Finished() || in.expired(l) {
			return
		}
		loads[l.Owner] = nil
		if l.Next != "" {
			loads[l.Next] = nil
		}
	}
	see(in.own)
	for _, l := range in.leases {
		see(l)
	}
	return loads
}

// mayBeRead reports whether the shard's parent, if there is one, is finished
// for certain. A parent's row that is not there proves nothing: it may have been
// made after the scan had passed its place.
func mayBeRead(l Lease, leases map[string]Lease) bool {
	return l.Parent == "" || l.Orphan || l.Checkpoint != TrimHorizon || leases[l.Parent].Finished() || guard.Off(guard.ParentShardFirst)
}

// share divides the vacant shards, then what some workers have beyond their share.
func (in leaseInput) share(plan *leasePlan, loads map[string][]Lease, vacant []Lease, askMax int) {
	workers := make([]string, 0, len(loads))
	total := len(vacant)
	for w, held := range loads {
		workers = append(workers, w)
		total += len(held)
	}
	// Who has the most keeps the odd ones.
	slices.SortFunc(workers, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(loads[b]), len(loads[a])), cmp.Compare(a, b))
	})
	target := make(map[string]int, len(workers))
	for i, w := range workers {
		target[w] = total / len(workers)
		if i < total%len(workers) {
			target[w]++
		}
	}
	// The vacant ones, and then those to be asked for, are one row of places
	// that the workers in need divide in order.
	var surplus []Lease
	for _, w := range workers {
		if held := loads[w]; len(held) > target[w] {
			surplus = append(surplus, held[target[w]:]...)
		}
	}
	from, need := 0, 0
	for _, w := range workers {
		need = max(0, target[w]-len(loads[w]))
		if w == in.worker {
			break
		}
		from += need
	}
	for i, l := range vacant {
		if from <= i && i < from+need && len(plan.take) < in.takeMax {
			plan.take = append(plan.take, l)
		}
	}
	for i, l := range vacant {
		// What is left lying belongs to whoever comes: its taker may be dead, or
		// see another picture.
		if (i < from || i >= from+need) && in.leftLying(l) && len(plan.take) < in.takeMax {
			plan.take = append(plan.take, l)
		}
	}
	for i, l := range surplus {
		place := len(vacant) + i
		if from <= place && place < from+need && l.Next == "" && len(plan.ask) < askMax {
			plan.ask = append(plan.ask, l)
		}
	}
}

// leftLying reports whether a vacant shard has been so for long. Workers come
// at different times, so that they do not all come at once.
func (in leaseInput) leftLying(l Lease) bool {
	lying := in.now.Sub(in.changed[l.Shard])
	if l.Owner != "" {
		lying -= in.term
	}
	h := fnv.New32a()
	h.Write([]byte(in.worker))
	h.Write([]byte(l.Shard))
	return lying >= in.term/4+in.term/4*time.Duration(h.Sum32()%16)/16
}
