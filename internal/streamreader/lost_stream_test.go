package streamreader

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynamill/dynamill/internal/sim/dynamosim"
)

// TestLagShowsWhileNoWorkerHasAnAnswer cuts both workers off from the stream, so that they give the one shard to each other in turn.
// None of them may tell that nothing waits.
func TestLagShowsWhileNoWorkerHasAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t, dynamosim.Options{})
		var lines []*faultyLine
		for _, name := range []string{"a", "b"} {
			d := &faultyLine{}
			lines = append(lines, d)
			c.join(name, func(cfg *Config) {
				d.line = cfg.Streams.(*line)
				cfg.Streams = d
			})
		}
		c.write(t, "item")
		time.Sleep(20 * time.Second)
		for _, d := range lines {
			d.set(false, true)
		}
		moves := c.members["a"].reader.Stats().LeaseMoves
		began := time.Now()
		for range 60 {
			time.Sleep(testTerm)
			var lag time.Duration
			for _, m := range c.members {
				lag = max(lag, m.reader.Stats().Lag)
			}
			if cut := time.Since(began); lag < cut {
				t.Fatalf("cut off for %s, they are %s behind", cut, lag)
			}
		}
		if moves == c.members["a"].reader.Stats().LeaseMoves {
			t.Error("the shard stayed with one worker")
		}
		for _, d := range lines {
			d.set(false, false)
		}
		time.Sleep(20 * testTerm)
		for name, m := range c.members {
			if lag := m.reader.Stats().Lag; lag > 0 {
				t.Errorf("answered again, %s is %s behind", name, lag)
			}
		}
		c.dismiss()
	})
}

// TestSpareWorkerMakesProgress has a second worker find no shard to read. It looks at the leases all the same.
func TestSpareWorkerMakesProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t, dynamosim.Options{})
		for _, name := range []string{"a", "b"} {
			c.join(name, func(cfg *Config) { cfg.LeaseTerm = time.Hour })
			time.Sleep(10 * time.Second)
		}
		for range 24 {
			time.Sleep(17 * time.Minute)
			for name, m := range c.members {
				if still := time.Since(m.reader.Stats().LastProgress); still > time.Minute {
					t.Errorf("%s made no progress for %s", name, still)
				}
			}
		}
		c.dismiss()
	})
}

// unreleasing fails to release leases while refused is set.
type unreleasing struct {
	Checkpoints
	refused atomic.Bool
}

func (u *unreleasing) Release(ctx context.Context, l Lease) (Lease, error) {
	if u.refused.Load() {
		return l, errors.New("dial tcp: i/o timeout")
	}
	return u.Checkpoints.Release(ctx, l)
}

// TestHandOverThatCannotBeWrittenEndsNoWorker has a worker give a shard to another one while the lease table does not take the last
// checkpoint.
func TestHandOverThatCannotBeWrittenEndsNoWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t, dynamosim.Options{Shards: 2})
		stop := c.keepWriting(50*time.Millisecond, 8)
		u := &unreleasing{Checkpoints: NewLeaseTable(c.sim, "leases")}
		c.join("a", func(cfg *Config) { cfg.Checkpoints, cfg.CheckpointInterval = u, time.Minute })
		time.Sleep(5 * time.Second)
		u.refused.Store(true)
		c.join("b")
		time.Sleep(5 * testTerm)
		select {
		case err := <-c.members["a"].ended:
			t.Fatalf("the worker has ended: %v", err)
		default:
		}
		u.refused.Store(false)
		time.Sleep(5 * testTerm)
		if owners := c.owners(); loadsOf(owners) != "1 1" {
			t.Errorf("they share %v", owners)
		}
		c.finish(stop, true)
	})
}
