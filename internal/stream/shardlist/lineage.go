// Package shardlist lists a stream's shards. From a list and the lease rows it decides which rows to make and to
// delete, and which shards lost records or are skipped. Parents come before their children.
package shardlist

import (
	"maps"
	"slices"

	"github.com/dynamill/dynamill/internal/stream/leases"
	"github.com/dynamill/dynamill/internal/stream/streamapi"
)

// MissingLists is how many lists in a row must lack a shard before it counts as lost, or its
// row as useless: a list of many pages is not one moment's picture.
const MissingLists = 3

// Plan says what follows from a list of shards and the leases.
type Plan struct {
	Create  []leases.Lease    // rows for shards that have none, or an unadopted one, parents first
	Read    []streamapi.Shard // to be read now, if no worker does already; the others wait for their parent
	Done    []leases.Lease    // rows that serve no worker any more, unless the list was incomplete
	Missing []leases.Lease    // unfinished, yet the stream does not list them: lost, unless the list was incomplete
}

// PlanLineage decides which shards may be read: those whose parent is finished, or is neither listed nor in a row. rows are
// of this stream's shards only; followed says what Followed does. It is pure: same input, same plan, in order of shard ids.
func PlanLineage(streamARN string, listed []streamapi.Shard, rows map[string]leases.Lease, followed bool) Plan {
	var plan Plan
	byID := ByID(listed)
	for _, s := range InOrder(byID) {
		lease, known := rows[s.ID]
		if lease.Finished() {
			continue
		}
		begun := known && lease.Checkpoint != leases.TrimHorizon
		_, parentListed := byID[s.Parent]
		parent, parentKnown := rows[s.Parent]
		alone := !parentListed && !parentKnown // also if it has no parent
		if !known || lease.Unadopted {
			lease = rowOf(streamARN, s)
			lease.Orphan = s.Parent != "" && alone
			// All shards of the first list have, or had, rows. So the parent of this shard appeared and was dropped
			// between two lists: its records are lost. The child gets no row, so that a restart finds the loss, too.
			if followed && lease.Orphan && !begun {
				plan.Missing = append(plan.Missing, leases.Lease{Shard: s.Parent, Stream: streamARN, Checkpoint: leases.TrimHorizon})
				continue
			}
			plan.Create = append(plan.Create, lease)
		}
		if alone || parent.Finished() {
			plan.Read = append(plan.Read, s)
		}
	}
	for id, lease := range rows {
		if _, ok := byID[id]; !ok && !lease.Finished() {
			plan.Missing = append(plan.Missing, lease)
		}
	}
	plan.Done = outlived(byID, rows)
	slices.SortFunc(plan.Missing, leases.CompareShards)
	plan.Missing = slices.CompactFunc(plan.Missing, func(a, b leases.Lease) bool { return a.Shard == b.Shard }) // of two children
	return plan
}

// ForeignParents returns the rows of shards that another program did not finish, that the stream has dropped,
// and whose children are to be begun: records are lost.
func ForeignParents(streamARN string, listed []streamapi.Shard, rows, foreign map[string]leases.Lease) []leases.Lease {
	gone := map[string]leases.Lease{}
	for _, s := range listed {
		l, known := rows[s.ID]
		if parent, ok := foreign[s.Parent]; ok && (!known || l.Unadopted) {
			parent.Stream = streamARN
			gone[s.Parent] = parent
		}
	}
	for _, s := range listed {
		delete(gone, s.ID)
	}
	return slices.SortedFunc(maps.Values(gone), leases.CompareShards)
}

// PlanPart plans rows for a part of the list: of shards whose parent has, or gets, a row. So no row is made
// before that of a parent that is listed.
func PlanPart(streamARN string, part []streamapi.Shard, rows map[string]leases.Lease) []leases.Lease {
	planned := map[string]bool{}
	var create []leases.Lease
	for _, s := range InOrder(ByID(part)) {
		_, known := rows[s.ID]
		_, parentKnown := rows[s.Parent]
		if known || s.Parent != "" && !parentKnown && !planned[s.Parent] {
			continue
		}
		planned[s.ID] = true
		create = append(create, rowOf(streamARN, s))
	}
	return create
}

func rowOf(streamARN string, s streamapi.Shard) leases.Lease {
	return leases.Lease{Shard: s.ID, Stream: streamARN, Parent: s.Parent, Start: s.Start, Checkpoint: leases.TrimHorizon}
}

// outlived returns the rows of finished shards that are no longer listed, that have a child row, and whose children are
// all finished. The children's rows still show that the stream was followed.
func outlived(byID map[string]streamapi.Shard, rows map[string]leases.Lease) []leases.Lease {
	held, hasChild := map[string]bool{}, map[string]bool{}
	for _, l := range rows {
		hasChild[l.Parent] = true
		held[l.Parent] = held[l.Parent] || !l.Finished()
	}
	for id, s := range byID {
		if _, known := rows[id]; !known {
			held[s.Parent] = true
		}
	}
	var done []leases.Lease
	for id, l := range rows {
		if _, listed := byID[id]; !listed && l.Finished() && hasChild[id] && !held[id] {
			done = append(done, l)
		}
	}
	slices.SortFunc(done, leases.CompareShards)
	return done
}

// HasProgress reports whether dynamill did anything of the stream. Rows are all made before the first
// shard is read, so that without progress a crash may have left only some of them.
func HasProgress(rows map[string]leases.Lease) bool {
	for _, l := range rows {
		if l.Checkpoint != leases.TrimHorizon && !l.Unadopted {
			return true
		}
	}
	return false
}

// Followed reports whether all shards that the stream had at first have, or had, rows: the stream's own row
// says so, and where there is none, progress does.
func Followed(own leases.Lease, rows map[string]leases.Lease) bool {
	if own.Shard == "" {
		return HasProgress(rows)
	}
	return own.Checkpoint != leases.TrimHorizon
}

// ByID returns shards by their ids.
func ByID(shards []streamapi.Shard) map[string]streamapi.Shard {
	byID := make(map[string]streamapi.Shard, len(shards))
	for _, s := range shards {
		byID[s.ID] = s
	}
	return byID
}

// InOrder returns the shards parents first, else by id.
func InOrder(byID map[string]streamapi.Shard) []streamapi.Shard {
	ordered := make([]streamapi.Shard, 0, len(byID))
	placed := make(map[string]bool, len(byID))
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		// Walk up to the eldest ancestor that is not placed yet, then down.
		var line []streamapi.Shard
		for s, ok := byID[id]; ok && !placed[s.ID]; s, ok = byID[s.Parent] {
			placed[s.ID] = true
			line = append(line, s)
		}
		slices.Reverse(line)
		ordered = append(ordered, line...)
	}
	return ordered
}

// ChildrenOf returns, by the parent's id, the ids of the listed children, in order.
func ChildrenOf(listed []streamapi.Shard) map[string][]string {
	children := map[string][]string{}
	for _, s := range listed {
		if s.Parent != "" {
			children[s.Parent] = append(children[s.Parent], s.ID)
		}
	}
	for _, ids := range children {
		slices.Sort(ids)
	}
	return children
}

// ChildrenIn returns, by the parent's id, the ids of the children that have rows, in order.
func ChildrenIn(rows map[string]leases.Lease) map[string][]string {
	listed := make([]streamapi.Shard, 0, len(rows))
	for _, l := range rows {
		listed = append(listed, streamapi.Shard{ID: l.Shard, Parent: l.Parent})
	}
	return ChildrenOf(listed)
}

// Stranded returns the parents that rows wait for although neither the stream
// nor the table has them: they were listed once and went unread.
func Stranded(read []streamapi.Shard, rows map[string]leases.Lease) []leases.Lease {
	var missing []leases.Lease
	for _, s := range read {
		if l, ok := rows[s.ID]; ok && !leases.MayBeRead(l, rows) {
			missing = append(missing, leases.Lease{Shard: l.Parent, Stream: l.Stream, Checkpoint: leases.TrimHorizon})
		}
	}
	return missing
}

// Childless returns the listed shards that are finished and of which no child
// is known.
func Childless(listed []streamapi.Shard, rows map[string]leases.Lease) []string {
	children := ChildrenIn(rows)
	var ids []string
	for _, s := range listed {
		if rows[s.ID].Finished() && len(children[s.ID]) == 0 {
			ids = append(ids, s.ID)
		}
	}
	return ids
}
