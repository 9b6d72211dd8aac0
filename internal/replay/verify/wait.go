package verify

import (
	"context"
	"time"

	"github.com/dynamill/dynamill/internal/pace"
)

// wait bounds how long one set of suspects is waited for.
type wait struct {
	ends   time.Time     // of the set's part of Config.Wait
	least  time.Duration // paused for this set also after ends: what proving drift takes
	settle time.Duration
	paused time.Duration
}

// next is how long to pause before the suspects are read again; 0 when the wait is over.
func (w *wait) next(now time.Time) time.Duration {
	pause := min(w.settle, max(w.ends.Sub(now), w.least-w.paused, 0))
	w.paused += pause
	return pause
}

// waits divides Config.Wait between the suspects of a chunk that are judged by
// themselves and its sums, which are judged after those. Chunks share one
// Config.Wait: when it is over, each later set still gets what proving drift takes.
func (v *run) waits(singles, sums bool) (forSingles, forSums *wait) {
	if v.waitEnds.IsZero() {
		v.waitEnds = time.Now().Add(v.Wait)
	}
	share := v.Wait
	if singles && sums {
		share /= 2
	}
	least := min(provingIntervals*v.Settle, share)
	forSingles = &wait{ends: v.waitEnds, least: least, settle: v.Settle}
	forSums = &wait{ends: v.waitEnds, least: least, settle: v.Settle}
	if sums {
		forSingles.ends = v.waitEnds.Add(-least)
	}
	return forSingles, forSums
}

const (
	// provingIntervals is how many times Config.Settle each set of suspects gets:
	// one between two readings, and one more where the first reading came amid a change.
	provingIntervals = 2
	// waitProgressEvery is how often a wait reports how much of it is left.
	waitProgressEvery = time.Second
)

// await pauses, and reports meanwhile what it waits for.
func (v *run) await(ctx context.Context, left []*suspense, pauseTime time.Duration) error {
	reasons := map[string]int64{}
	for _, o := range left {
		reasons[o.why]++
	}
	v.progress.Reasons = reasons
	defer func() { v.progress.Reasons = nil }()
	for ends := time.Now().Add(pauseTime); ; {
		rest := time.Until(ends)
		if rest <= 0 {
			return nil
		}
		v.progress.WaitLeft = max(time.Until(v.waitEnds), 0)
		v.showProgress(PhaseWaiting)
		if pace.Sleep(ctx, min(rest, waitProgressEvery)) != nil {
			return ctx.Err()
		}
	}
}
