package streamreader

import (
	"context"
	"errors"
	"time"

	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/dynamill/dynamill/streamreader/internal/leases"
)

// list begins a list of the shards if it is time for one and this worker's turn.
func (f *follower) list(ctx context.Context) {
	mine := f.fleet.lists()
	// Who drains wants to know of itself that nothing is left.
	if !mine && (!f.drain || !f.settled() || !f.allIdle()) || f.lists != nil || time.Now().Before(f.nextList) {
		return
	}
	var only []string // parents whose children are looked for; nil: everything is listed
	if f.found.pages > 1 && f.soon < f.r.cfg.ListInterval && !f.drain {
		only = childless(f.found.shards, f.leases)
		switch {
		case len(only) == 0: // all were found
			f.soon, f.nextList = f.r.cfg.ListInterval, f.nextFull
			return
		case len(only) >= f.found.pages:
			only = nil
		}
	}
	f.idleAtAsk = f.allIdle()
	f.skips.askedAt = time.Now()
	ctx, f.stopList = context.WithCancel(ctx)
	pages := make(chan listed)
	f.lists = pages
	f.wg.Go(func() { f.lister.send(ctx, only, pages) })
}

// page takes over one page of a list, or its failure.
func (f *follower) page(ctx, work context.Context, p listed) error {
	err := p.err
	if err == nil {
		f.decoder, f.listedAt = p.found.decoder, time.Now()
		if err = f.takePage(ctx, p); err == nil {
			f.apply(ctx, work)
		}
	}
	if err == nil && p.last && p.complete {
		err = f.complete(ctx)
	}
	if err == nil && !p.last {
		return nil
	}
	f.stopList()
	f.lists = nil
	wait, full := f.nextWait(p.took)
	f.nextList = time.Now().Add(wait)
	if p.complete {
		f.nextFull = time.Now().Add(full)
	}
	switch {
	case err == nil:
		f.failing.Reset()
		f.fleet.silence.lists = time.Time{}
		return nil
	case ctx.Err() != nil:
		return nil
	case errors.Is(err, ErrLeaseLost): // somebody else lists now
	case classify(err) != verdictRetry, f.decoder.label == "" && time.Since(f.began) > startMax:
		return err
	}
	wait = f.failing.NextBackOff()
	f.nextList = time.Now().Add(wait)
	// At the start there is no need for it: who cannot list then ends soon.
	if f.fleet.lists() && f.decoder.label != "" && f.fleet.silence.failedList(f.r.cfg.LeaseTerm) {
		f.r.cfg.Logger.Warn("listing the stream's shards failed for a while, another worker may try", "error", err)
		f.fleet.resign(ctx)
		return nil
	}
	f.r.cfg.Logger.Warn("listing the stream's shards failed, will retry", "wait", wait, "error", err)
	return nil
}

// takePage makes the rows that a page asks for.
func (f *follower) takePage(ctx context.Context, p listed) error {
	if p.complete && p.last {
		f.found = p.found
		children := childrenOf(p.found.shards)
		for _, s := range p.found.shards {
			if reader := f.running[s.id]; reader != nil {
				reader.observe(s, children[s.id], p.found.status)
			}
		}
		mine := f.fleet.lists()
		if mine {
			if err := f.createRows(ctx, strayParents(f.r.cfg.StreamARN, f.found.shards, f.leases, f.strays)); err != nil {
				return err
			}
		}
		f.plan = planLineage(f.r.cfg.StreamARN, f.found.shards, f.leases, !f.fresh)
		if !mine {
			return nil
		}
		return f.createRows(ctx, f.plan.create)
	}
	if !f.fleet.lists() {
		return nil
	}
	if !p.complete {
		f.found.shards = append(f.found.shards, p.page...)
	}
	if err := f.fleet.describe(ctx, f.decoder, f.fleet.own.Checkpoint); err != nil {
		return err
	}
	return f.createRows(ctx, planPart(f.r.cfg.StreamARN, p.page, f.leases))
}

// complete draws the conclusions that only a whole list allows.
func (f *follower) complete(ctx context.Context) error {
	if f.fleet.lists() {
		if err := f.fleet.describe(ctx, f.decoder, Latest); err != nil {
			return err
		}
		f.fresh = false
		f.plan.missing = append(f.plan.missing, stranded(f.plan.read, f.leases)...)
		if err := f.judgeMissing(); err != nil {
			return err
		}
		f.deleteDone(ctx)
	}
	f.findSkipped()
	known := f.fleet.lists() || len(f.plan.create)+len(f.plan.missing) == 0
	f.drained = known && !f.skips.undecided() && f.idleAtAsk && f.settled() && f.allIdle() && f.found.status != streams.StreamStatusEnabling
	return nil
}

// hurry brings the list forward that tells who drains whether the stream is read up.
func (f *follower) hurry() {
	if !f.drain || f.lists != nil {
		return
	}
	idle := f.allIdle()
	if idle && !f.wasIdle {
		f.nextList = time.Now()
	}
	f.wasIdle = idle
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
	if len(f.plan.missing) > 0 || f.skips.undecided() {
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
		if f.running[lease.Shard] != nil || lease.Owner != "" && !f.fleet.expired(lease) {
			continue
		}
		lacking[lease.Shard] = f.missing[lease.Shard] + 1
		if lacking[lease.Shard] >= missingLists {
			return &permanentError{&TrimmedError{StreamARN: f.r.cfg.StreamARN, Shard: lease.Shard, Checkpoint: lease.Checkpoint}}
		}
	}
	f.missing = lacking
	if len(lacking) > 0 {
		f.fleet.scans.newsPending = true // by the next list the rows are to say who reads what
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
