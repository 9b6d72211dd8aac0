package replay

import (
	"context"
	"math"
	"time"

	"golang.org/x/time/rate"
)

// readBurstPart is the part of a second's read units that may go at once after a pause.
const readBurstPart = 10

// ReadPace keeps reads below a number of read units per second, all those
// together that share it. What a page takes is known only behind it: it is a
// debt then, which the next pages wait for.
type ReadPace struct{ limiter *rate.Limiter }

// NewReadPace holds to unitsMax read units per second, which is more than 0.
func NewReadPace(unitsMax float64) *ReadPace {
	return &ReadPace{rate.NewLimiter(rate.Limit(unitsMax), max(1, int(unitsMax/readBurstPart)))}
}

// wait waits until what was read before is paid for. A nil pace waits for nothing.
func (p *ReadPace) wait(ctx context.Context) error {
	if p == nil {
		return nil
	}
	// Not WaitN, which gives up at once where the context's deadline comes first.
	reserved := p.limiter.ReserveN(time.Now(), 1)
	delay := reserved.Delay()
	if delay <= 0 {
		return nil
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		reserved.Cancel()
		return context.Cause(ctx)
	}
}

// pay takes the units that a page used, beyond the one that was waited for.
func (p *ReadPace) pay(units float64) {
	if p == nil {
		return
	}
	now := time.Now()
	for left := int(math.Ceil(units)) - 1; left > 0; {
		part := min(left, p.limiter.Burst()) // no more can be reserved at a time
		p.limiter.ReserveN(now, part)
		left -= part
	}
}
