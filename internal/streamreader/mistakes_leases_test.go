package streamreader

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/sim/dynamosim"
)

// These are those of the mistakes listed in mistakes_test.go that are made with
// checkpoints and leases.

func TestPartlyReadClosedShardMarkedFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c, cp := newFakeStream(), &collector{}, newLeases()
		s := f.open("shard", "")
		f.write(s, "item", 10)
		f.close(s)
		ctx, cancel := context.WithCancel(t.Context())
		c.before = func(_ context.Context, records []change.Record) (int, error) {
			cancel() // the stop comes while the first batch is in hand
			return len(records), nil
		}
		small := func(cfg *Config) { cfg.BatchMax = 4 }
		if err := newTestReader(t, f, cp, c, small).Run(ctx); err != nil {
			t.Fatal(err)
		}
		if got, want := leaseOf(t, cp, "shard").Checkpoint, *s.records[3].Dynamodb.SequenceNumber; got != want {
			t.Errorf("checkpoint after the stop %s, want that of the fourth record, %s", got, want)
		}
		c.before = nil
		if err := newTestReader(t, f, cp, c, small).Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantItems(t, c, map[string]int{"item": 10})
	})
}

func TestChildNotBlockedWhenTheParentsLeaseIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c, cp := newFakeStream(), &collector{}, newLeases()
		parent := f.open("z-parent", "") // sorts behind its child
		f.write(parent, "item", 5)
		f.close(parent)
		f.write(f.open("a-child", "z-parent"), "item", 5)
		if _, err := cp.Create(t.Context(), Lease{Shard: "a-child", Stream: testARN, Checkpoint: TrimHorizon, Parent: "z-parent"}); err != nil {
			t.Fatal(err)
		}
		c.before = func(_ context.Context, records []change.Record) (int, error) {
			time.Sleep(time.Minute) // time enough for a child that does not wait
			return len(records), nil
		}
		if err := newTestReader(t, f, cp, c).Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantItems(t, c, map[string]int{"item": 10}) // and in order
	})
}

func TestNonContiguousAcknowledgementsCheckpointed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c, cp := newFakeStream(), &collector{}, newLeases()
		s := f.open("shard", "")
		f.write(s, "item", 9)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		calls := 0
		c.before = func(_ context.Context, records []change.Record) (int, error) {
			if calls++; calls == 1 {
				return 2, errors.New("the third record cannot be done now")
			}
			return 0, errors.New("nor now")
		}
		if err := newTestReader(t, f, cp, c, func(cfg *Config) { cfg.BatchMax = 3 }).Run(ctx); err != nil {
			t.Fatal(err)
		}
		if calls < 5 || calls > 200 {
			t.Errorf("%d calls in a minute: want retries, with growing waits", calls)
		}
		if got, want := leaseOf(t, cp, "shard").Checkpoint, *s.records[1].Dynamodb.SequenceNumber; got != want {
			t.Errorf("checkpoint %s, want the second record's, %s", got, want)
		}
	})
}

func TestSequenceNumbersComparedAsStrings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c, cp := newFakeStream(), &collector{}, newLeases()
		s := f.open("shard", "")
		f.write(s, "item", 20)
		first, last := *s.records[0].Dynamodb.SequenceNumber, *s.records[19].Dynamodb.SequenceNumber
		if first < last {
			t.Fatalf("%s and %s sort alike as strings and as numbers", first, last)
		}
		if err := newTestReader(t, f, cp, c, func(cfg *Config) { cfg.BatchMax = 1; cfg.CheckpointInterval = 1 }).Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantItems(t, c, map[string]int{"item": 20})
		if got := leaseOf(t, cp, "shard").Checkpoint; got != last {
			t.Errorf("checkpoint %s, want %s", got, last)
		}
	})
}

func TestTwoConsumersOnOneShardAfterARefreshRace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFakeStream(), &collector{}
		f.latency = 3 * time.Second
		s := f.open("shard", "")
		time.AfterFunc(time.Minute, func() { f.write(s, "item", 10) })
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		if err := newTestReader(t, f, newLeases(), c, func(cfg *Config) { cfg.ListInterval = time.Second }).Run(ctx); err != nil {
			t.Fatal(err)
		}
		if lists := len(f.calls("DescribeStream")); lists < 60 {
			t.Errorf("%d lists only", lists)
		}
		if f.together != 1 {
			t.Errorf("%d readers of one shard at the same time", f.together)
		}
		wantItems(t, c, map[string]int{"item": 10})
	})
}

// No other worker is there when the leases expire, and the process lives on.
func TestWorkerThatCannotReclaimItsOwnLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t, dynamosim.Options{Shards: 4})
		stop := c.keepWriting(50*time.Millisecond, 20)
		m := c.join("a")
		time.Sleep(20 * time.Second)
		m.line.mu.Lock()
		m.line.cut = true
		m.line.mu.Unlock()
		time.Sleep(3 * testTerm)
		m.line.mu.Lock()
		m.line.cut = false
		m.line.mu.Unlock()
		stop()
		time.Sleep(3 * testTerm) // failed calls are repeated after up to two terms
		if n, st := c.behind(), m.reader.Stats(); n > 0 || st.Open != 4 {
			t.Errorf("%d items are behind after the outage: %+v", n, st)
		}
		c.dismiss()
		c.judge(true)
	})
}

func TestALeaseThatADeadWorkerHasLeftIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c, cp := newFakeStream(), &collector{}, newLeases()
		f.write(f.open("shard", ""), "item", 3)
		// A process that crashed has left the lease as its own.
		if _, err := cp.Create(t.Context(), Lease{Shard: "shard", Stream: testARN, Owner: "crashed", Counter: 41,
			Checkpoint: TrimHorizon}); err != nil {
			t.Fatal(err)
		}
		if err := newTestReader(t, f, cp, c).Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantItems(t, c, map[string]int{"item": 3})
		if l := leaseOf(t, cp, "shard"); l.Owner == "crashed" || l.Counter <= 41 {
			t.Errorf("lease %+v, want another owner and a higher counter", l)
		}
	})
}
