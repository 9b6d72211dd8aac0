package streamreader

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/dynamill/dynamill/internal/stream/shardlist"
)

// await waits for the next thing to do: a page of the list, a shard that has
// ended, the time of the next list or of the next scan of the leases. In a drain,
// a list follows at once when all shards have become idle.
func (f *follower) await(ctx, work context.Context) error {
	scan := time.NewTimer(time.Until(f.fleet.NextScan()))
	defer scan.Stop()
	list := time.NewTimer(time.Until(f.nextList))
	defer list.Stop()
	listAt := list.C
	if f.lists != nil || !f.fleet.Lists() && !f.drain {
		listAt = nil
	}
	for {
		e := f.awaitEvents(ctx, listAt, scan.C)
		if handled, err := f.handleEvents(ctx, work, e); handled || err != nil || ctx.Err() != nil || e.scanDue {
			return err
		}
		if e.listDue && f.fleet.Lists() {
			return nil
		}
		if e.listDue {
			listAt = nil // another worker lists; the next scan decides
		}
	}
}

// events happen at almost the same time. Shards often end together; the follower
// handles what comes together in one order, and balances once.
type events struct {
	ended                     []endedShard
	page                      *shardlist.Page
	allIdle, listDue, scanDue bool
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
			e.listDue = true
		case <-scan:
			e.scanDue = true
		case p := <-pages:
			e.page, pages = &p, nil
		case <-f.idle:
			e.allIdle = true
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

// handleEvents reports whether the events changed anything.
func (f *follower) handleEvents(ctx, work context.Context, e events) (bool, error) {
	var errs []error
	for _, shard := range e.ended {
		errs = append(errs, f.take(shard))
	}
	if err := errors.Join(errs...); err != nil || ctx.Err() != nil {
		return true, err
	}
	if len(e.ended) > 0 {
		f.listSoon()
		f.apply(ctx, work) // children that are known need not wait for the list
	}
	if e.page != nil {
		if err := f.page(ctx, work, *e.page); err != nil {
			return true, err
		}
	}
	listAgain := e.allIdle && f.drain && f.lists == nil && f.allIdle()
	return listAgain || e.page != nil || len(e.ended) > 0, nil
}
