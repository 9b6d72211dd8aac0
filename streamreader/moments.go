package streamreader

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"
)

// await waits for the next thing to do: a page of the list, a shard that has
// ended, the time of the next list or of the next look at the leases. Draining,
// a list comes at once when all shards have fallen idle.
func (f *follower) await(ctx, work context.Context) error {
	var list, look <-chan time.Time
	if f.lists == nil && (f.fleet.lists() || f.drain) {
		timer := time.NewTimer(time.Until(f.nextList))
		defer timer.Stop()
		list = timer.C
	}
	timer := time.NewTimer(time.Until(f.fleet.nextLook()))
	defer timer.Stop()
	look = timer.C
	for {
		m := f.gather(ctx, list, look)
		if over, err := f.meet(ctx, work, m); over || err != nil || ctx.Err() != nil || m.look {
			return err
		}
		if m.list {
			if f.fleet.lists() {
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
		f.apply(ctx, work) // children that are known need not wait for the list
	}
	if m.page != nil {
		if err := f.page(ctx, work, *m.page); err != nil {
			return true, err
		}
	}
	again := m.idle && f.drain && f.lists == nil && f.allIdle()
	return again || m.page != nil || len(m.ended) > 0, nil
}
