package streamreader

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/dynamill/dynamill/streamreader/internal/leases"
)

// await waits for the next thing to do: a page of the list, a shard that has
// ended, the time of the next list or of the next look at the leases. Draining,
// a list comes at once when all shards have fallen idle.
func (f *follower) await(ctx, work context.Context) error {
	var list, look <-chan time.Time
	if f.lists == nil && (f.fleet == nil || f.fleet.lists() || f.drain) {
		timer := time.NewTimer(time.Until(f.nextList))
		defer timer.Stop()
		list = timer.C
	}
	if f.fleet != nil {
		timer := time.NewTimer(time.Until(f.fleet.nextLook()))
		defer timer.Stop()
		look = timer.C
	}
	for {
		m := f.gather(ctx, list, look)
		if over, err := f.meet(ctx, work, m); over || err != nil || ctx.Err() != nil || m.look {
			return err
		}
		if m.list {
			if f.fleet == nil || f.fleet.lists() {
				return nil
			}
			list = nil // not this worker's turn; the next look decides
		}
	}
}

// moment is what happens at, almost, the same time. Shards often end together;
// what comes together is met in one order, and balanced once.
type moment struct {
	ended            []endedShard
	page             *listed
	idle, list, look bool
}

// gatherFor is how long a moment lasts.
const gatherFor = time.Millisecond

// gather waits for something to happen, and for what comes with it.
func (f *follower) gather(ctx context.Context, list, look <-chan time.Time) (m moment) {
	var over <-chan time.Time
	pages := f.lists
	for {
		select {
		case <-ctx.Done():
			return m
		case <-over:
			slices.SortFunc(m.ended, func(a, b endedShard) int { return cmp.Compare(a.id, b.id) })
			return m
		case <-list:
			m.list = true
		case <-look:
			m.look = true
		case p := <-pages:
			m.page, pages = &p, nil
		case <-f.idle:
			m.idle = true
		case e := <-f.ended:
			m.ended = append(m.ended, e)
		}
		if over == nil {
			timer := time.NewTimer(gatherFor)
			defer timer.Stop()
			over = timer.C
		}
	}
}

// meet does what follows from a moment, and reports whether anything did.
func (f *follower) meet(ctx, work context.Context, m moment) (bool, error) {
	var errs []error
	for _, e := range m.ended {
		errs = append(errs, f.take(e))
	}
	if err := errors.Join(errs...); err != nil || ctx.Err() != nil {
		return true, err
	}
	if len(m.ended) > 0 {
		f.listSoon()
		// Children that are known need not wait for the list. If their
		// rows cannot be made now, the list's own round tries again.
		if err := f.apply(ctx, work); err != nil && classify(err) != verdictRetry {
			return true, err
		}
	}
	if m.page != nil {
		if err := f.page(ctx, work, *m.page); err != nil {
			return true, err
		}
	}
	again := m.idle && f.drain && f.lists == nil && f.allIdle()
	if again {
		f.nextList = time.Now()
	}
	return again || m.page != nil || len(m.ended) > 0, nil
}

// listSoon brings the next list forward: a shard has ended.
func (f *follower) listSoon() {
	f.soon = listSoon
	f.nextList = time.Now()
}

// nextWait is how long to wait for the next list after one that took so long,
// and for the next one of all shards. A list of many pages is not made all the
// time: children are looked for by their parents.
func (f *follower) nextWait(took time.Duration) (wait, full time.Duration) {
	full = max(f.r.cfg.ListInterval, listPart*took)
	wait = full
	if f.soon < f.r.cfg.ListInterval {
		wait = f.soon
		f.soon *= 2
	}
	if len(f.plan.missing) > 0 {
		wait = min(wait, time.Second)
	}
	return wait, full
}

// listPart: lists take at most one part in so many of the time.
const listPart = 4

// judgeMissing returns a TrimmedError once lists have lacked an unfinished
// shard often enough. Shards that are being read, by whoever, are
// told by their readers' own calls.
func (f *follower) judgeMissing() error {
	lacking := map[string]int{}
	for _, lease := range f.plan.missing {
		if f.running[lease.Shard] != nil || f.fleet != nil && lease.Owner != "" && !f.fleet.expired(lease) {
			continue
		}
		lacking[lease.Shard] = f.missing[lease.Shard] + 1
		if lacking[lease.Shard] >= missingLists {
			return &permanentError{&TrimmedError{StreamARN: f.r.cfg.StreamARN, Shard: lease.Shard, Checkpoint: lease.Checkpoint}}
		}
	}
	f.missing = lacking
	if f.fleet != nil && len(lacking) > 0 {
		f.fleet.looks.called = true // by the next list the rows are to say who reads what
	}
	return nil
}

// stranded returns the parents that rows wait for although neither the stream
// nor the table has them: they were listed once and went unread.
func stranded(read []shardInfo, rows map[string]Lease) []Lease {
	var missing []Lease
	for _, s := range read {
		if l, ok := rows[s.id]; ok && !leases.MayBeRead(l, rows) {
			missing = append(missing, Lease{Shard: l.Parent, Stream: l.Stream, Checkpoint: TrimHorizon})
		}
	}
	return missing
}

// childless returns the listed shards that are finished and of which no child
// is known.
func childless(listed []shardInfo, rows map[string]Lease) []string {
	children := childrenIn(rows)
	var ids []string
	for _, s := range listed {
		if rows[s.id].Finished() && len(children[s.id]) == 0 {
			ids = append(ids, s.id)
		}
	}
	return ids
}

// deleteDone deletes rows that serve nobody any more, so that the lease table
// does not grow for ever. Whatever fails is tried again after the next list.
func (f *follower) deleteDone(ctx context.Context) {
	done := map[string]int{}
	for _, lease := range f.plan.done {
		done[lease.Shard] = f.done[lease.Shard] + 1
		if done[lease.Shard] < missingLists {
			continue
		}
		if err := f.r.cfg.Checkpoints.Delete(ctx, lease); err != nil {
			f.r.cfg.Logger.Warn("an old lease could not be deleted, will retry", "shard", lease.Shard, "error", err)
			continue
		}
		delete(f.leases, lease.Shard)
	}
	f.done = done
}

// settled reports whether the plan leaves nothing to wait for.
func (f *follower) settled() bool {
	return len(f.plan.waiting) == 0 && len(f.missing) == 0 && (f.fleet == nil || f.fleet.settled())
}

// allIdle reports whether every shard that is being read, by whoever, is open and empty.
func (f *follower) allIdle() bool {
	for _, s := range f.running {
		if !s.idle() {
			return false
		}
	}
	return f.fleet == nil || f.fleet.othersIdle(f.leases, f.r.cfg.DrainPolls)
}

// over reports whether there is nothing left to follow.
func (f *follower) over() (bool, error) {
	if f.drain && f.drained {
		return true, nil
	}
	// Of shards that others read, the rows tell when they are finished.
	if f.found.status == streams.StreamStatusDisabled && len(f.running) == 0 && f.settled() && f.allFinished() {
		f.drained = true
		if f.drain {
			return true, nil
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
	if f.fleet == nil {
		for _, s := range f.found.shards {
			if f.leases[s.id].Finished() {
				finished++
			}
		}
	} else {
		for _, l := range f.leases {
			if l.Finished() {
				finished++
			}
		}
	}
	others := f.fleet == nil || f.allListed() && f.fleet.othersCaughtUp(f.leases, f.r.cfg.DrainPolls, f.began)
	if f.fleet != nil {
		f.fleet.behind = !others
	}
	rows := f.sharedShards()
	f.r.mu.Lock()
	f.r.state.rows = rows
	f.r.state.behind = !others
	f.r.state.waiting, f.r.state.finished, f.r.state.listedAt = waiting, finished, f.listedAt
	if f.fleet != nil && f.fleet.looks.at.After(f.listedAt) {
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
	}
	return f.fleet.own.Checkpoint == Latest
}

// waiting are the shards that wait for their parent.
func (f *follower) waiting() []string {
	if f.fleet == nil {
		return f.plan.waiting
	}
	return f.fleet.plan.Waiting
}

// publishRunning tells Stats which shards are read.
func (f *follower) publishRunning() {
	shards := make(map[string]*shardReader, len(f.running))
	for id, s := range f.running {
		shards[id] = s
	}
	if f.fleet != nil {
		for id, p := range f.fleet.silence.shards { // a shard that nobody can read must show
			if shards[id] == nil {
				shards[id] = p.reader
			}
		}
	}
	f.r.mu.Lock()
	defer f.r.mu.Unlock()
	f.r.state.shards = shards
}
