package tablescan

import (
	"context"
	"math"
	"time"

	"golang.org/x/time/rate"

	"github.com/dynamill/dynamill/internal/pace"
)

// readBurstPart is the part of a second's read units that may go at once after a pause.
const readBurstPart = 10

// Pace keeps reads below a number of read units per second, all those together
// that share it. Only the answer says how many units a page took: they are a debt
// then, which the next pages wait for. A nil Pace waits for nothing.
type Pace struct{ limiter *rate.Limiter }

// NewPace holds to unitsMax read units per second; it returns nil for 0.
func NewPace(unitsMax float64) *Pace {
	if unitsMax <= 0 {
		return nil
	}
	return &Pace{rate.NewLimiter(rate.Limit(unitsMax), max(1, int(unitsMax/readBurstPart)))}
}

// wait waits until the pages read before are paid for.
func (p *Pace) wait(ctx context.Context) error {
	if p == nil {
		return nil
	}
	// Not WaitN, which gives up at once where the context's deadline comes first.
	reserved := p.limiter.ReserveN(time.Now(), 1)
	delay := reserved.Delay()
	if delay <= 0 {
		return nil
	}
	err := pace.Sleep(ctx, delay)
	if err != nil {
		reserved.Cancel()
	}
	return err
}

// pay takes the units that a page used, beyond the one that was waited for.
func (p *Pace) pay(units float64) {
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
