package streamreader

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/dynamill/dynamill/internal/stream/shardlist"
)

// await waits for the next thing to do, and does it: a page of the list, a shard that has
// ended. It returns also at the time of the next list or of the next scan of the leases, and,
// in a drain, when a shard has become idle.
func (f *follower) await(ctx, work context.Context) error {
	scan := time.NewTimer(time.Until(f.fleet.NextScan()))
	defer scan.Stop()
	list := time.NewTimer(time.Until(f.nextList))
	defer list.Stop()
	listAt := list.C
	if f.lists != nil || !f.fleet.Lists() {
		listAt = nil // of a worker that drains beside the lister, the next scan decides
	}
	return f.handleEvents(ctx, work, f.awaitEvents(ctx, listAt, scan.C))
}

// events happen at almost the same time. Shards often end together; the follower
// handles what comes together in one order, and balances once.
type events struct {
	ended []endedShard
	page  *shardlist.Page
}

// eventsSpan is the time in which events count as simultaneous.
const eventsSpan = time.Millisecond

// awaitEvents waits for the first event, and for those that come with it.
func (f *follower) awaitEvents(ctx context.Context, list, scan <-chan time.Time) (e events) {
	var over <-chan time.Time
	pages := f.lists
	for {
		select {
		case <-ctx.Done():
			return e
		case <-over:
			slices.SortFunc(e.ended, func(a, b endedShard) int { return cmp.Compare(a.id, b.id) })
			return e
		case <-list:
		case <-scan:
		case p := <-pages:
			e.page, pages = &p, nil
		case <-f.idle:
		case shard := <-f.ended:
			e.ended = append(e.ended, shard)
		}
		if over == nil {
			timer := time.NewTimer(eventsSpan)
			defer timer.Stop()
			over = timer.C
		}
	}
}

func (f *follower) handleEvents(ctx, work context.Context, e events) error {
	var errs []error
	for _, shard := range e.ended {
		errs = append(errs, f.take(shard))
	}
	if err := errors.Join(errs...); err != nil || ctx.Err() != nil {
		return err
	}
	if len(e.ended) > 0 {
		f.listSoon()
		f.apply(ctx, work) // children that are known need not wait for the list
	}
	if e.page != nil {
		return f.page(ctx, work, *e.page)
	}
	return nil
}
