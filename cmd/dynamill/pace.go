package main

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// burstPart is the part of a second's write units that may go at once after a pause.
const burstPart = 10

// checkRates refuses what no --rate and no --read-rate can be.
func checkRates(writeMax int, readMax float64) error {
	switch {
	case writeMax < 0:
		return invalid("--rate %d is negative: give write units per second", writeMax)
	case !(readMax >= 0): // or no number
		return invalid("--read-rate %g is no rate: give read units per second", readMax)
	}
	return nil
}

// writePace keeps what the engine writes below a number of write units per
// second. A request waits for the least that it takes; what it took more, which
// is known only behind it, is a debt that the next ones wait for. So a request
// larger than a second's units goes too, and is paid for later.
type writePace struct {
	limiter *rate.Limiter
	waited  atomic.Int64 // nanoseconds, added up
}

// newWritePace holds to unitsMax write units per second.
func newWritePace(unitsMax int) *writePace {
	return &writePace{limiter: rate.NewLimiter(rate.Limit(unitsMax), max(1, unitsMax/burstPart))}
}

// take reserves units and returns how long they have to be waited for.
func (p *writePace) take(units int) (wait time.Duration) {
	now := time.Now()
	for units > 0 {
		part := min(units, p.limiter.Burst()) // no more can be reserved at a time
		wait = p.limiter.ReserveN(now, part).DelayFrom(now)
		units -= part
	}
	return wait
}

// Wait waits until the units may be used.
func (p *writePace) Wait(ctx context.Context, units int) error {
	wait := p.take(units)
	if wait <= 0 {
		return nil
	}
	began := time.Now()
	defer func() { p.waited.Add(int64(time.Since(began))) }()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// Pay makes later requests wait for units that were used already.
func (p *writePace) Pay(units int) { p.take(units) }

// timeWaited is how long requests have waited, added up. It may be asked of a pace that is nil.
func (p *writePace) timeWaited() time.Duration {
	if p == nil {
		return 0
	}
	return time.Duration(p.waited.Load())
}
