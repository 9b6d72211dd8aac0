// Package pace waits: for a time, and until a process may use more read or write units. It imports no other room.
package pace

import (
	"context"
	"time"

	"golang.org/x/time/rate"
)

// burstPart is the part of a second's units that may go at once after a pause.
const burstPart = 10

// Units keeps the read units that requests use together below a number per second. A request waits for the least that it
// takes; what it took more is a debt that the next ones wait for. So a request larger than a second's units goes too.
type Units struct{ limiter *rate.Limiter }

// New returns a pace of at most unitsMax units per second; nil for 0.
func New(unitsMax float64) *Units {
	if unitsMax <= 0 {
		return nil
	}
	return &Units{limiter: rate.NewLimiter(rate.Limit(unitsMax), max(1, int(unitsMax/burstPart)))}
}

// take reserves units and returns how long they have to be waited for.
func (p *Units) take(units int) (wait time.Duration) {
	now := time.Now()
	for units > 0 {
		part := min(units, p.limiter.Burst()) // no more can be reserved at a time
		wait = p.limiter.ReserveN(now, part).DelayFrom(now)
		units -= part
	}
	return wait
}

// Wait waits until the units may be used.
func (p *Units) Wait(ctx context.Context, units int) error {
	if wait := p.take(units); wait > 0 {
		return Sleep(ctx, wait)
	}
	return nil
}

// Sleep waits, or returns the context's cause if that ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// Pay makes later requests wait for units that were used already.
func (p *Units) Pay(units int) { p.take(units) }

// Graceful returns a context that ends with base, and at the latest when ctx has been over for timeout.
func Graceful(ctx, base context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	work, cancel := context.WithCancel(base)
	stop := context.AfterFunc(ctx, func() {
		if Sleep(work, timeout) == nil {
			cancel()
		}
	})
	return work, func() { stop(); cancel() }
}
