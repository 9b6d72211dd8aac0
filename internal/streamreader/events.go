package streamreader

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/dynamill/dynamill/internal/pace"
	"github.com/dynamill/dynamill/internal/stream/shardlist"
)

// eventsSpan is the time in which events count as simultaneous. Shards often end together; the
// follower handles what comes together in one order, and balances once.
const eventsSpan = time.Millisecond

// await waits for the next thing to do, and does it: a page of the list, a shard that has
// ended. It returns also at the time of the next list or of the next scan of the leases, and,
// in a drain, when a shard has become idle.
func (f *follower) await(ctx, work context.Context) error {
	next := f.fleet.NextScan()
	if f.lists == nil && f.fleet.Lists() && f.nextList.Before(next) {
		next = f.nextList // of a worker that drains beside the lister, the next scan decides
	}
	timer := time.NewTimer(time.Until(next))
	defer timer.Stop()
	var page *shardlist.Page
	select {
	case <-ctx.Done():
		return nil
	case <-timer.C:
	case <-f.woken:
	case p := <-f.lists:
		page = &p
	}
	if pace.Sleep(ctx, eventsSpan) != nil {
		return nil
	}
	if page == nil {
		select {
		case p := <-f.lists:
			page = &p
		default:
		}
	}
	someEnded, err := f.dropAllEnded()
	if err != nil || ctx.Err() != nil {
		return err
	}
	if someEnded {
		f.listSoon()
		f.balanceAndPublish(ctx, work) // children that are known need not wait for the list
	}
	if page == nil {
		return nil
	}
	return f.handlePage(ctx, work, *page)
}

func (f *follower) queueEnded(shard endedShard) {
	f.mu.Lock()
	f.ended = append(f.ended, shard)
	f.mu.Unlock()
	f.wake()
}

func (f *follower) wake() {
	select {
	case f.woken <- struct{}{}:
	default: // the loop has been woken already
	}
}

// dropAllEnded puts back the leases of the shards that have ended, and reports whether there are any.
func (f *follower) dropAllEnded() (bool, error) {
	f.mu.Lock()
	ended := f.ended
	f.ended = nil
	f.mu.Unlock()
	slices.SortFunc(ended, func(a, b endedShard) int { return cmp.Compare(a.id, b.id) })
	var errs []error
	for _, shard := range ended {
		errs = append(errs, f.dropEnded(shard))
	}
	return len(ended) > 0, errors.Join(errs...)
}
