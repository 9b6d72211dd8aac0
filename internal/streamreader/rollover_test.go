package streamreader

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynamill/dynamill/internal/sim/dynamosim"
	"github.com/dynamill/dynamill/internal/sim/worldsize"
)

// The worker that has read a shard reads its child, so that nothing moves
// between workers that are in balance.
func TestRolledOverShardsStayWithTheirWorkers(t *testing.T) {
	for _, test := range []struct {
		workers, shards int
		between         time.Duration // of one shard's rolling over and the next one's
	}{
		{workers: 4, shards: 8},
		{workers: 5, shards: 20},
		{workers: 4, shards: 8, between: 300 * time.Millisecond},
		{workers: 3, shards: 8},
		{workers: 4, shards: 4},
		{workers: 4, shards: 8, between: 3 * time.Second},
	}[:worldsize.Of(6, 3)] {
		t.Run(fmt.Sprintf("%d workers, %d shards, one every %s", test.workers, test.shards, test.between), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrew(t, dynamosim.Options{Shards: test.shards})
				stop := c.keepWriting(200*time.Millisecond, 40)
				for i := range test.workers {
					c.join(fmt.Sprintf("worker%d", i))
				}
				time.Sleep(time.Minute)
				before, balanced := c.moves(), loadsOf(c.owners())
				times := worldsize.Of(5, 2)
				for range times {
					c.rollOver(test.between)
					time.Sleep(time.Minute)
					if now := loadsOf(c.owners()); now != balanced {
						t.Errorf("loads %s before, %s after", balanced, now)
					}
				}
				if moved, want := c.moves()-before, int64(times*test.shards); moved != want {
					t.Errorf("%d moves, want %d: one for each new shard", moved, want)
				}
				stop()
				time.Sleep(5 * time.Second)
				c.work.mu.Lock()
				if c.work.slowest > 5*time.Second {
					t.Errorf("a record waited for %s", c.work.slowest)
				}
				c.work.mu.Unlock()
				c.dismiss()
				c.judge(false)
			})
		})
	}
}

// A worker that leaves amid that leaves no shard lying for long that was to be its own.
func TestWorkerThatLeavesDuringARolloverHoldsUpNothing(t *testing.T) {
	for i := range worldsize.Of(12, 4) {
		after := time.Duration(i) * 250 * time.Millisecond
		t.Run(after.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrew(t, dynamosim.Options{Shards: 8})
				stop := c.keepWriting(20*time.Millisecond, 40)
				c.joinAll("a", "b", "c")
				time.Sleep(time.Minute)
				c.rollOver(0)
				time.Sleep(after)
				c.leave(c.members["b"])
				time.Sleep(10 * time.Second)
				if owners := c.owners(); loadsOf(owners) != "4 4" {
					t.Errorf("%v", owners)
				}
				c.finish(stop, false)
				if c.work.slowest > 5*time.Second {
					t.Errorf("a record waited for %s", c.work.slowest)
				}
			})
		})
	}
}

// rollOver rolls every open shard over, one after the other.
func (c *crew) rollOver(between time.Duration) {
	c.t.Helper()
	open, err := c.sim.OpenShards(simTable)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, shard := range open {
		if _, err := c.sim.RollOver(simTable, shard); err != nil {
			c.t.Fatal(err)
		}
		time.Sleep(between)
	}
}

// moves is how many shards the workers have begun, given away and lost.
func (c *crew) moves() (n int64) {
	for _, m := range c.members {
		n += m.reader.Stats().LeaseMoves
	}
	return n
}
