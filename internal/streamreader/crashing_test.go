package streamreader

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/sim/dynamosim"
)

// A batch that no worker survives, say for want of memory, is taken in smaller pieces: under
// new names, as in an autoscaling group, and under one, as a StatefulSet restarts its pod.
func TestBatchThatEndsEachWorkerIsTakenInPieces(t *testing.T) {
	for name, nameOf := range map[string]func(int) string{
		"new names": func(i int) string { return fmt.Sprintf("worker-%d", i) },
		"one name":  func(int) string { return "worker" },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrew(t, dynamosim.Options{})
				for i := range 60 {
					c.write(t, fmt.Sprint("item", i%20))
				}
				crashes := 0
				for c.processed() < 60 {
					if crashes++; crashes > 80 {
						t.Fatalf("after %d crashes %d of 60 records are done", crashes, c.processed())
					}
					c.liveUntilMoreThan(5, c.prepare(nameOf(crashes)))
				}
				c.judge(true)
			})
		})
	}
}

func (c *crew) processed() (n int) {
	c.work.mu.Lock()
	defer c.work.mu.Unlock()
	for _, version := range c.work.seen {
		n += version
	}
	return n
}

// liveUntilMoreThan runs a worker that dies with the first batch of more than so many records, or
// stops when all is done.
func (c *crew) liveUntilMoreThan(recordsMax int, m *member) {
	var ctx context.Context
	ctx, m.cancel = context.WithTimeout(context.Background(), time.Hour)
	work := c.work.by(m)
	m.reader.cfg.Processor = processorFunc(func(ctx context.Context, records []change.Record) (int, error) {
		if len(records) > recordsMax {
			c.kill(m)
			return 0, errors.New("killed")
		}
		return work.Process(ctx, records)
	})
	if err := m.reader.Run(ctx); err != nil {
		c.t.Log(err)
	}
	m.cancel()
}
