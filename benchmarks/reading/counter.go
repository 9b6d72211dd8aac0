package main

import (
	"fmt"
	"strings"
	"sync"
	"syscall"
	"time"
)

// counter takes the time at which records arrive.
type counter struct {
	want  int
	began time.Time
	spent time.Duration // CPU time of this process before
	done  chan struct{} // closed when want records have arrived

	mu         sync.Mutex
	seen       int
	firstBatch int
	first      time.Time
	last       time.Time
	cpu        time.Duration
	sequence   string // of the last record
}

// newCounter starts the clock.
func newCounter(want int) *counter {
	return &counter{want: want, began: time.Now(), spent: cpuTime(), done: make(chan struct{})}
}

// add says that n records are there, of which the last one has this sequence number.
func (c *counter) add(n int, sequence string) {
	if n == 0 {
		return
	}
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == 0 {
		c.first, c.firstBatch = now, n
	}
	before := c.seen
	c.seen += n
	if before < c.want && c.seen >= c.want {
		c.last, c.cpu = now, cpuTime()-c.spent
		c.sequence = strings.TrimLeft(sequence, "0") // some keep the padding, some do not
		close(c.done)
	}
}

// timing is how long one reading took.
type timing struct {
	total    time.Duration // from before the reader was made until the last record
	startup  time.Duration // until the first records
	steady   float64       // records per second from then on; 0 if they were all
	cpu      time.Duration // of this process, kernel's included
	sequence string        // of the record that came last
}

// timing returns the figures of a reading that is over.
func (c *counter) timing() (timing, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen != c.want {
		return timing{}, fmt.Errorf("%d records arrived, not %d", c.seen, c.want)
	}
	t := timing{total: c.last.Sub(c.began), startup: c.first.Sub(c.began), cpu: c.cpu, sequence: c.sequence}
	if rest := c.last.Sub(c.first); rest > 0 {
		t.steady = float64(c.want-c.firstBatch) / rest.Seconds()
	}
	return t, nil
}

// cpuTime returns the CPU time that this process has used.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0 // it cannot fail with these arguments
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
