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
	Worker string
	Now    time.Time        // when the rows were last read, by this worker's own clock, as all times here
	Term   time.Duration    // this worker's own, and that of owners whose rows name none
	Own    Lease            // the stream's own row: its owner is alive, also without a shard
	Leases map[string]Lease // the rows of the stream's shards
	// changed is when a row's counter or owner was first seen to be what it is,
	// by shard, and for the stream's own row by its name. The write was before that.
	Changed map[string]time.Time
	Busy    map[string]bool // shards that this worker reads, or has not let go yet
	TakeMax int
	AskMax  int // shards that have been asked for and not handed over included
}

// Expired reports whether the owner has written nothing for a term, which is the
// owner's own: it stops by that. Only this worker's clock is asked.
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
	Ask     []Lease  // of owners that have more than their share
	Vacant  int      // shards that no worker reads, these included
	Workers int      // that are seen to live, this one included
	Waiting []string // shards that wait for their parent
}

// Divide works out one division of the shards between the workers that
// are seen to live, and returns this worker's part of it. Workers with
// the same view make the same division, so that they do not run after the same
// shards; a worker that the others do not see yet counts itself in. A shard moves only
// from a worker that has two more than another, so that balance is kept once it is
// found. A worker that has just read a shard to its end keeps the place for its first
// child. It is pure: same input, same plan.
func Divide(in Input) Plan {
	var plan Plan
	loads, first := in.living(), firstChildren(in.Leases)
	var vacant []Lease
	pending, kept := 0, 0
	keep := func(l Lease, owner string) {
		if held, lives := loads[owner]; lives {
			loads[owner] = append(held, l)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(in.Leases)) {
		l := in.Leases[id]
		gone := in.Expired(l)
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
		case in.Busy[id] && (l.Owner == "" || gone):
		case in.heir(l, first) != "":
			heir := in.heir(l, first)
			if keep(l, heir); heir == in.Worker && len(plan.Take) < in.TakeMax {
				plan.Take = append(plan.Take, l)
			} else {
				kept++
			}
		case l.Owner == "" || gone:
			vacant = append(vacant, l)
		case l.Next != "":
			if l.Next == in.Worker {
				pending++
			}
			loads[l.Next] = append(loads[l.Next], l)
		default:
			loads[l.Owner] = append(loads[l.Owner], l)
		}
	}
	plan.Vacant, plan.Workers = len(vacant)+len(plan.Take)+kept, len(loads)
	in.share(&plan, loads, vacant, in.AskMax-pending)
	return plan
}

// living returns an empty load for each worker that is seen to live, or waits for a shard.
func (in Input) living() map[string][]Lease {
	loads := map[string][]Lease{in.Worker: nil}
	see := func(l Lease) {
		if l.Owner == "" || l.Finished() || in.Expired(l) {
			return
		}
		loads[l.Owner] = nil
		if l.Next != "" {
			loads[l.Next] = nil
		}
	}
	see(in.Own)
	for _, l := range in.Leases {
		see(l)
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

// MayBeRead reports whether the shard's parent, if there is one, is finished
// for certain. A parent's row that is not there proves nothing: it may have been
// made after the scan had passed its place.
func MayBeRead(l Lease, leases map[string]Lease) bool {
	if l.Unadopted && l.Checkpoint == TrimHorizon {
		return false // where the shard begins is not known yet, nor its parent
	}
	return l.Parent == "" || l.Orphan || l.Checkpoint != TrimHorizon || leases[l.Parent].Finished()
}

// share divides the vacant shards, then what some workers have beyond their share.
func (in Input) share(plan *Plan, loads map[string][]Lease, vacant []Lease, askMax int) {
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
		if w == in.Worker {
			break
		}
		from += need
	}
	for i, l := range vacant {
		if from <= i && i < from+need && len(plan.Take) < in.TakeMax {
			plan.Take = append(plan.Take, l)
		}
	}
	for i, l := range vacant {
		// What is left lying goes to the first worker that comes: its taker may be dead, or
		// see another picture.
		if (i < from || i >= from+need) && in.leftLying(l) && len(plan.Take) < in.TakeMax {
			plan.Take = append(plan.Take, l)
		}
	}
	for i, l := range surplus {
		place := len(vacant) + i
		if from <= place && place < from+need && l.Owner != "" && !l.Finished() && l.Next == "" && len(plan.Ask) < askMax {
			plan.Ask = append(plan.Ask, l)
		}
	}
}

// leftLying reports whether a vacant shard has been so for long. Workers come
// at different times, so that they do not all come at once.
func (in Input) leftLying(l Lease) bool {
	lying := in.Now.Sub(in.Changed[l.Shard])
	if l.Owner != "" {
		lying -= in.TermOf(l)
	}
	h := fnv.New32a()
	h.Write([]byte(in.Worker))
	h.Write([]byte(l.Shard))
	return lying >= in.Term/4+in.Term/4*time.Duration(h.Sum32()%16)/16
}
