package pace

import (
	"context"
	"math"
	"sync"
	"time"
)

const (
	piecesPerSecond = 10               // background work waits until a tenth of a second's units can be paid
	shareOfBudget   = 10               // background work gets at least a tenth, however much the stream's records take
	debtMax         = 10               // seconds: what the stream's records overdraw beyond is forgiven
	spendingSpan    = 10 * time.Second // the time over which Spending is an average
	waitsAfter      = 10 * time.Second // work that has waited so lately is still said to wait
)

// Budget is a number of write units per second for all that a process writes. What the stream's records need is charged,
// and never held back. Background work goes in pieces, one at a time. A piece begins when the budget has units left,
// and is charged what it wrote: the next one waits for it. So nothing waits between its reads and its writes.
// A nil Budget holds nothing back. It is safe for concurrent use.
type Budget struct {
	perSecond float64
	turn      chan struct{} // holds a token while a piece is under way

	mu       sync.Mutex
	at       time.Time // of the amounts below
	left     float64   // units; negative: overdrawn
	share    float64   // units of background work that the stream's records cannot take
	spending float64   // units per second
	waits    map[string]waiting
	reported time.Time
}

type waiting struct{ since, until time.Time }

// NewBudget returns a budget; nil for 0. At first, and after a pause, it holds the units of a second.
func NewBudget(unitsPerSecond int) *Budget {
	if unitsPerSecond <= 0 {
		return nil
	}
	b := &Budget{perSecond: float64(unitsPerSecond), turn: make(chan struct{}, 1), at: time.Now(), waits: map[string]waiting{}}
	b.left, b.share = b.leftMax(), b.pieceMin()
	return b
}

// pieceMin is how many units have to be left for a piece to begin.
func (b *Budget) pieceMin() float64 { return max(1, b.perSecond/piecesPerSecond) }

// leftMax is what is left after a pause. With the share it is a second's units.
func (b *Budget) leftMax() float64 { return max(1, b.perSecond-b.pieceMin()) }

func (b *Budget) advance(now time.Time) {
	seconds := now.Sub(b.at).Seconds()
	b.at = now
	b.left = min(b.leftMax(), b.left+seconds*b.perSecond)
	b.share = min(b.pieceMin(), b.share+seconds*b.perSecond/shareOfBudget)
	b.spending *= math.Exp(-seconds / spendingSpan.Seconds())
}

// Spend charges units that were written.
func (b *Budget) Spend(units float64, background bool) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(time.Now())
	b.spending += units / spendingSpan.Seconds()
	if !background {
		b.left = max(b.left-units, min(b.left, -debtMax*b.perSecond))
		return
	}
	if b.left <= 0 {
		b.share -= units
	}
	b.left -= units
}

// Left returns how many units, up to most, can be paid now.
func (b *Budget) Left(most int) int {
	if b == nil {
		return most
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(time.Now())
	return min(most, max(0, int(b.left)))
}

// Begin waits until background work may write. It returns how many things the units at hand pay for, at unitsEach units
// each: from 1 to most. The caller calls end after the piece. Use shows the wait under the name work.
func (b *Budget) Begin(ctx context.Context, work string, most, unitsEach int) (things int, end func(), err error) {
	if b == nil {
		return most, func() {}, nil
	}
	select {
	case b.turn <- struct{}{}:
	case <-ctx.Done():
		return 0, nil, context.Cause(ctx)
	}
	for {
		units, wait := b.next(work)
		if wait <= 0 {
			return min(most, max(1, int(units)/unitsEach)), func() { <-b.turn }, nil
		}
		if err := Sleep(ctx, wait); err != nil {
			<-b.turn
			return 0, nil, err
		}
	}
}

// next returns the units of the next piece, or how long it has to be waited for.
func (b *Budget) next(work string) (units float64, wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, enough := time.Now(), b.pieceMin()
	b.advance(now)
	seconds := min((enough-b.left)/b.perSecond, (enough-b.share)/(b.perSecond/shareOfBudget))
	if wait = time.Duration(math.Ceil(seconds * float64(time.Second))); wait <= 0 {
		return max(b.left, b.share), 0
	}
	since := now
	if w, known := b.waits[work]; known && now.Sub(w.until) <= waitsAfter {
		since = w.since
	}
	b.waits[work] = waiting{since, now.Add(wait)}
	return 0, wait
}

// PerSecond is the number of units; 0 for none.
func (b *Budget) PerSecond() int {
	if b == nil {
		return 0
	}
	return int(b.perSecond)
}

// Use returns how many units are spent a second, and which background work waits, since when.
func (b *Budget) Use() (spending float64, waits map[string]time.Time) {
	if b == nil {
		return 0, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.advance(now)
	for work, w := range b.waits {
		if now.Sub(w.until) > waitsAfter {
			continue
		}
		if waits == nil {
			waits = map[string]time.Time{}
		}
		waits[work] = w.since
	}
	return b.spending, waits
}

// ReportDue reports whether background work waits, at most once per every.
func (b *Budget) ReportDue(every time.Duration) bool {
	if _, waits := b.Use(); len(waits) == 0 {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	due := now.Sub(b.reported) >= every
	if due {
		b.reported = now
	}
	return due
}
