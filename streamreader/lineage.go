package streamreader

import (
	"maps"
	"slices"

	"github.com/dynamill/dynamill/streamreader/internal/leases"
)

// lineagePlan says what follows from a list of shards and the leases.
type lineagePlan struct {
	create  []Lease     // rows for shards that have none, or a bare one, parents first
	read    []shardInfo // to be read now, if nobody does already
	waiting []string    // shards whose parent is not finished
	done    []Lease     // rows that serve nobody any more, unless the list was incomplete
	missing []Lease     // unfinished, yet the stream does not list them: lost, unless the list was incomplete
}

// planLineage decides which shards may be read. A shard may be read once its
// parent is finished; a parent that the stream no longer lists and that no
// lease names cannot hold anything back. leases holds the rows of this stream's
// shards only; followed says whether all shards that the stream had at first
// have, or had, rows. It is pure: same input, same plan, in order of shard ids.
func planLineage(streamARN string, listed []shardInfo, rows map[string]Lease, followed bool) lineagePlan {
	var plan lineagePlan
	byID := make(map[string]shardInfo, len(listed))
	for _, s := range listed {
		byID[s.id] = s
	}
	lost := map[string]bool{}
	for _, s := range inOrder(byID) {
		lease, known := rows[s.id]
		if known && lease.Finished() {
			continue
		}
		begun := known && lease.Checkpoint != TrimHorizon
		_, parentListed := byID[s.parent]
		parentLease, parentKnown := rows[s.parent]
		alone := !parentListed && !parentKnown
		if !known || lease.Bare {
			lease = rowOf(streamARN, s)
			lease.Orphan = s.parent != "" && alone
			// With rows that show progress, a shard whose parent nobody knows
			// is the grandchild of one that was read: a generation between
			// came and went unread. Its row is not made, so that this stays
			// to be seen after a restart too.
			if followed && lease.Orphan && !begun {
				lost[s.parent] = true
				plan.waiting = append(plan.waiting, s.id)
				continue
			}
			plan.create = append(plan.create, lease)
		}
		switch {
		case s.parent == "",
			parentKnown && parentLease.Finished(),
			alone:
			plan.read = append(plan.read, s)
		default:
			plan.waiting = append(plan.waiting, s.id)
		}
	}
	for id := range lost {
		plan.missing = append(plan.missing, Lease{Shard: id, Stream: streamARN, Checkpoint: TrimHorizon})
	}
	for id, lease := range rows {
		if _, ok := byID[id]; !ok && !lease.Finished() {
			plan.missing = append(plan.missing, lease)
		}
	}
	plan.done = outlived(byID, rows)
	slices.SortFunc(plan.missing, leases.CompareShards)
	return plan
}

// strayParents returns the rows that another program has left of shards which
// the stream has dropped and whose children are to be begun: that program did
// not finish them, so that records are lost.
func strayParents(streamARN string, listed []shardInfo, rows, strays map[string]Lease) []Lease {
	gone := map[string]Lease{}
	for _, s := range listed {
		l, known := rows[s.id]
		if parent, ok := strays[s.parent]; ok && (!known || l.Bare) {
			parent.Stream = streamARN
			gone[s.parent] = parent
		}
	}
	for _, s := range listed {
		delete(gone, s.id)
	}
	return slices.SortedFunc(maps.Values(gone), leases.CompareShards)
}

// planPart plans rows for a part of the list: of shards whose parent has, or
// gets, a row. Whether the others' parents are still to come shows at the end
// of the list. So no row is made before that of a parent that is listed.
func planPart(streamARN string, part []shardInfo, rows map[string]Lease) []Lease {
	byID := make(map[string]shardInfo, len(part))
	for _, s := range part {
		byID[s.id] = s
	}
	planned := map[string]bool{}
	var create []Lease
	for _, s := range inOrder(byID) {
		_, known := rows[s.id]
		_, parentKnown := rows[s.parent]
		if known || s.parent != "" && !parentKnown && !planned[s.parent] {
			continue
		}
		planned[s.id] = true
		create = append(create, rowOf(streamARN, s))
	}
	return create
}

func rowOf(streamARN string, s shardInfo) Lease {
	return Lease{Shard: s.id, Stream: streamARN, Parent: s.parent, Start: s.start, Checkpoint: TrimHorizon}
}

// outlived returns the rows of finished shards that the stream has dropped and
// whose children are finished too: no shard waits for them, and the children's
// rows show that the stream was followed up to there.
func outlived(byID map[string]shardInfo, rows map[string]Lease) []Lease {
	held, hasChild := map[string]bool{}, map[string]bool{}
	for _, l := range rows {
		hasChild[l.Parent] = true
		held[l.Parent] = held[l.Parent] || !l.Finished()
	}
	for id, s := range byID {
		if _, known := rows[id]; !known {
			held[s.parent] = true
		}
	}
	var done []Lease
	for id, l := range rows {
		if _, listed := byID[id]; !listed && l.Finished() && hasChild[id] && !held[id] {
			done = append(done, l)
		}
	}
	slices.SortFunc(done, leases.CompareShards)
	return done
}

// hasProgress reports whether anything of the stream was done. Rows are all
// made before the first shard is read, so that without progress a crash may
// have left only some of them. What another program did says nothing of that.
func hasProgress(rows map[string]Lease) bool {
	for _, l := range rows {
		if l.Checkpoint != TrimHorizon && !l.Bare {
			return true
		}
	}
	return false
}

// inOrder returns the shards parents first, else by id.
func inOrder(byID map[string]shardInfo) []shardInfo {
	ids := make([]string, 0, len(byID))
	for id := range byID {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	ordered := make([]shardInfo, 0, len(ids))
	placed := make(map[string]bool, len(ids))
	for _, id := range ids {
		// Walk up to the eldest ancestor that is not placed yet, then down.
		var line []shardInfo
		for s, ok := byID[id]; ok && !placed[s.id]; s, ok = byID[s.parent] {
			placed[s.id] = true
			line = append(line, s)
		}
		slices.Reverse(line)
		ordered = append(ordered, line...)
	}
	return ordered
}

// childrenOf returns, by the parent's id, the ids of the listed children, in order.
func childrenOf(listed []shardInfo) map[string][]string {
	children := map[string][]string{}
	for _, s := range listed {
		if s.parent != "" {
			children[s.parent] = append(children[s.parent], s.id)
		}
	}
	for _, ids := range children {
		slices.Sort(ids)
	}
	return children
}

// childrenIn returns, by the parent's id, the ids of the children that have rows, in order.
func childrenIn(rows map[string]Lease) map[string][]string {
	listed := make([]shardInfo, 0, len(rows))
	for _, l := range rows {
		listed = append(listed, shardInfo{id: l.Shard, parent: l.Parent})
	}
	return childrenOf(listed)
}
