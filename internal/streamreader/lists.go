package streamreader

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/dynamill/dynamill/internal/stream/leases"
	"github.com/dynamill/dynamill/internal/stream/shardlist"
	"github.com/dynamill/dynamill/internal/stream/streamapi"

	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// beginListing begins a list of the shards if it is time for one and this worker's turn.
func (f *follower) beginListing(ctx context.Context) {
	idle := f.allIdle()
	f.idleAtList = f.idleAtList && idle
	if f.fleet.ScannedAt().IsZero() || f.lists != nil || time.Now().Before(f.nextList) && (!idle || f.idleAtList) {
		return // a drain lists as soon as all shards are idle
	}
	// A worker that drains lists itself, to know that nothing is left.
	if !f.fleet.Lists() && (!idle || !f.nothingPending()) {
		return
	}
	var only []string // parents whose children are listed; nil: everything is listed
	if f.found.Pages > 1 && f.soon < f.r.cfg.ListInterval && !f.drain {
		only = shardlist.Childless(f.found.Shards, f.fleet.Shards)
		switch {
		case len(only) == 0: // all were found
			f.soon, f.nextList = f.r.cfg.ListInterval, f.nextFull
			return
		case len(only) >= f.found.Pages:
			only = nil
		}
	}
	f.idleAtList = idle
	f.skips.BegunAt = time.Now()
	ctx, f.stopList = context.WithCancel(ctx)
	pages := make(chan shardlist.Page)
	f.lists = pages
	f.wg.Go(func() { f.lister.Send(ctx, only, pages) })
}

func (f *follower) handlePage(ctx, work context.Context, p shardlist.Page) error {
	err := p.Err
	if err == nil {
		if f.listedAt = time.Now(); p.Found.Decoder.Label != "" { // a list of children that are all gone describes no stream
			f.decoder = p.Found.Decoder
		}
		if err = f.takePage(ctx, p); err == nil {
			f.balanceAndPublish(ctx, work)
		}
	}
	if err == nil && p.Last && p.Complete {
		err = f.concludeListing(ctx)
	}
	if err == nil && !p.Last {
		return nil
	}
	f.stopList()
	f.lists = nil
	wait, full := f.nextWait(p.Took)
	f.nextList = time.Now().Add(wait)
	if p.Complete {
		f.nextFull = time.Now().Add(full)
	}
	switch {
	case err == nil:
		f.failing.Reset()
		f.fleet.ListSucceeded()
		return nil
	case ctx.Err() != nil:
		return nil
	case errors.Is(err, ErrLeaseLost): // another worker lists now
	case streamapi.Classify(err) != streamapi.VerdictRetry, f.decoder.Label == "" && time.Since(f.began) > startMax:
		return err
	}
	wait = f.failing.NextBackOff()
	f.nextList = time.Now().Add(wait)
	// At the start there is no need for it: a worker that cannot list then ends soon.
	if f.decoder.Label != "" && f.fleet.ListFailed(ctx) {
		f.r.cfg.Logger.Warn("listing the stream's shards failed for a while, another worker may try", "error", err)
		return nil
	}
	f.r.cfg.Logger.Warn("listing the stream's shards failed, will retry", "wait", wait, "error", err)
	return nil
}

func (f *follower) takePage(ctx context.Context, p shardlist.Page) error {
	if p.Complete && p.Last {
		f.found = p.Found
		children := shardlist.ChildrenOf(p.Found.Shards)
		for _, s := range p.Found.Shards {
			if reader := f.running[s.ID]; reader != nil {
				reader.Observe(s, children[s.ID], p.Found.Status)
			}
		}
		foreign := shardlist.ForeignParents(f.r.cfg.StreamARN, f.found.Shards, f.fleet.Shards, f.fleet.Foreign)
		if err := f.createRows(ctx, foreign); err != nil {
			return err
		}
		f.plan = shardlist.PlanLineage(f.r.cfg.StreamARN, f.found.Shards, f.fleet.Shards, !f.initialListing)
		return f.createRows(ctx, f.plan.Create)
	}
	if !f.fleet.Lists() {
		return nil
	}
	if !p.Complete {
		f.found.Shards = append(f.found.Shards, p.Page...)
	}
	if err := f.fleet.Describe(ctx, f.decoder, f.fleet.Own().Checkpoint); err != nil {
		return err
	}
	return f.createRows(ctx, shardlist.PlanPart(f.r.cfg.StreamARN, p.Page, f.fleet.Shards))
}

// concludeListing draws the conclusions that only a whole list allows.
func (f *follower) concludeListing(ctx context.Context) error {
	if f.fleet.Lists() {
		if err := f.fleet.Describe(ctx, f.decoder, leases.Latest); err != nil {
			return err
		}
		f.initialListing = false
		f.plan.Missing = append(f.plan.Missing, shardlist.Stranded(f.plan.Read, f.fleet.Shards)...)
		if err := f.judgeMissing(); err != nil {
			return err
		}
		f.deleteDone(ctx)
	}
	f.findSkipped()
	f.publish()
	known := f.fleet.Lists() || len(f.plan.Create)+len(f.plan.Missing) == 0
	f.drained = known && !f.skips.Undecided() && f.idleAtList && f.nothingPending() && f.allIdle() &&
		f.found.Status != streams.StreamStatusEnabling
	if f.drain && f.awaitsChildren() {
		f.drained = false
	}
	return nil
}

// childLate is how long after its parent's end a drain waits for a child to be listed.
const childLate = 10 * time.Second

// awaitsChildren reports whether a finished shard may still have a child that is not listed yet.
func (f *follower) awaitsChildren() bool {
	now, awaits, childless := time.Now(), false, map[string]time.Time{}
	for id, row := range f.fleet.Shards {
		if !row.Finished() || len(f.children[id]) > 0 || f.found.Status != streams.StreamStatusEnabled {
			continue
		}
		since, before := f.childless[id]
		if !before {
			since = now
		}
		childless[id], awaits = since, awaits || now.Sub(since) < childLate
	}
	f.childless, f.awaits = childless, awaits
	return awaits
}

func (f *follower) listSoon() {
	f.soon = listSoon
	f.nextList = time.Now()
}

// nextWait is how long to wait for the next list after one that took so long, and for the next one of all shards: a list
// of many pages is made rarely.
func (f *follower) nextWait(took time.Duration) (wait, full time.Duration) {
	full = max(f.r.cfg.ListInterval, listPart*took)
	wait = full
	if f.soon < f.r.cfg.ListInterval {
		wait = f.soon
		f.soon *= 2
	}
	if len(f.plan.Missing) > 0 || f.skips.Undecided() || f.awaits {
		wait = min(wait, time.Second)
	}
	return wait, full
}

// listPart: lists take at most one part in so many of the time.
const listPart = 4

// judgeMissing returns a TrimmedError once lists have lacked an unfinished shard often enough, unless a worker reads it.
func (f *follower) judgeMissing() error {
	unread := slices.DeleteFunc(slices.Clone(f.plan.Missing), func(lease leases.Lease) bool {
		return f.running[lease.Shard] != nil || lease.Owner != "" && !f.fleet.Expired(lease)
	})
	for _, lease := range f.missing.add(unread) {
		return streamapi.Permanent(&TrimmedError{StreamARN: f.r.cfg.StreamARN, Shard: lease.Shard, Checkpoint: lease.Checkpoint})
	}
	if len(unread) > 0 {
		f.fleet.ScanSoon() // the rows must name the shards' readers before the next list
	}
	return nil
}

// listCounts counts, by shard, the consecutive lists that said the same of its row.
type listCounts map[string]int

// add counts one more list. It returns the rows of which enough lists have said that.
func (c *listCounts) add(rows []leases.Lease) (enough []leases.Lease) {
	counts := listCounts{}
	for _, row := range rows {
		counts[row.Shard] = (*c)[row.Shard] + 1
		if counts[row.Shard] >= shardlist.MissingLists {
			enough = append(enough, row)
		}
	}
	*c = counts
	return enough
}
