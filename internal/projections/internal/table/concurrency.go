package table

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds of how many requests one piece of work has in flight.
const (
	requestsFirst = 16  // before anything is known of the table
	requestsMax   = 128 // however fast it answers
	requestsMin   = 2   // however often it throttles
)

// parallelism adapts how many requests are sent side by side: more while answers take little longer, half after a throttled one.
type parallelism struct {
	mu       sync.Mutex
	limit    int // 0: requestsFirst
	underWay int
	answers  int           // since limit changed, of requests that had at least half as many beside them
	took     time.Duration // all these
	most     int           // under way beside one of them, it included
	best     time.Duration // the least that one took on average, since no more than requestsFirst were under way
}

// begin notes that a request is sent.
func (p *parallelism) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.underWay++
}

// end notes the answer to a request.
func (p *parallelism) end(took time.Duration, throttled bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	limit, beside := cmp.Or(p.limit, requestsFirst), p.underWay
	p.underWay--
	if throttled {
		p.limit, p.answers, p.took, p.most = max(requestsMin, limit/2), 0, 0, 0
		return
	}
	if beside*2 < limit {
		return // so few tell nothing about more
	}
	p.answers, p.took, p.most = p.answers+1, p.took+took, max(p.most, beside)
	if p.answers < limit {
		return
	}
	average := p.took / time.Duration(p.answers)
	if p.best == 0 || average < p.best || p.most <= requestsFirst {
		p.best = average
	}
	switch {
	case 2*average <= 3*p.best:
		limit = min(requestsMax, limit+max(1, limit/4))
	case limit > requestsFirst:
		limit = max(requestsFirst, limit-limit/4)
	}
	p.limit, p.answers, p.took, p.most = limit, 0, 0, 0
}

// AtOnce is how many requests one piece of work may have in flight at this moment.
func (rd *Reader) AtOnce() int {
	rd.parallelism.mu.Lock()
	defer rd.parallelism.mu.Unlock()
	return cmp.Or(rd.parallelism.limit, requestsFirst)
}

// Slots bound the requests of one piece of work that are under way together, by what AtOnce allows at that moment.
type Slots struct {
	reader *Reader
	mu     sync.Mutex
	change *sync.Cond
	taken  int
}

// NewSlots returns slots for one piece of work.
func (rd *Reader) NewSlots() *Slots {
	s := &Slots{reader: rd}
	s.change = sync.NewCond(&s.mu)
	return s
}

// Take waits for a slot. A caller that holds one already must not take another.
func (s *Slots) Take() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.taken >= s.reader.AtOnce() {
		s.change.Wait()
	}
	s.taken++
	s.change.Signal() // there may be room for more: the bound may have risen
}

// Return gives a slot back.
func (s *Slots) Return() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
	s.change.Signal()
}

// Every calls f for 0 to n-1, several at once, and returns all errors. f sends one request after the other.
func (rd *Reader) Every(ctx context.Context, n int, f func(context.Context, int) error) []error {
	errs, slots := make([]error, n), rd.NewSlots()
	var all sync.WaitGroup
	for i := range n {
		slots.Take()
		all.Go(func() {
			defer slots.Return()
			errs[i] = f(ctx, i)
		})
	}
	all.Wait()
	return errs
}

// Each is Every, but begins no more calls once one has failed. It returns the error of the lowest number, not the first to come.
func (rd *Reader) Each(ctx context.Context, n int, f func(context.Context, int) error) error {
	var failed atomic.Bool
	return cmp.Or(rd.Every(ctx, n, func(ctx context.Context, i int) error {
		if failed.Load() {
			return nil
		}
		err := f(ctx, i)
		if err != nil {
			failed.Store(true)
		}
		return err
	})...)
}
