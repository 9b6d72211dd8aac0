package streamreader

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/dynamill/dynamill/change"
)

func TestNewNamesEveryProblemAtOnce(t *testing.T) {
	_, err := New(Config{BatchMax: -1, PollInterval: -1, BufferMax: 1000})
	for _, want := range []string{"Streams is missing", "StreamARN is missing", "Checkpoints is missing", "Processor is missing", "BatchMax",
		"PollInterval", "BufferMax"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New returned %v, want it to say %q", err, want)
		}
	}
}

func TestAStopFinishesTheBatchInHandAndCheckpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c, cp := newFakeStream(), &collector{}, newLeases()
		s := f.open("shard", "")
		f.write(s, "item", 10)
		ctx, cancel := context.WithCancel(t.Context())
		c.before = func(work context.Context, records []change.Record) (int, error) {
			cancel()
			time.Sleep(20 * time.Second)
			return len(records), work.Err()
		}
		if err := newTestReader(t, f, cp, c, func(cfg *Config) { cfg.BatchMax = 5 }).Run(ctx); err != nil {
			t.Fatal(err)
		}
		if c.count() != 5 {
			t.Errorf("%d records done, want the batch of 5 that was in hand", c.count())
		}
		if got, want := leaseOf(t, cp, "shard").Checkpoint, *s.records[4].Dynamodb.SequenceNumber; got != want {
			t.Errorf("checkpoint %s, want %s", got, want)
		}
	})
}

func TestAStopWaitsNoLongerThanItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFakeStream(), &collector{}
		f.write(f.open("shard", ""), "item", 10)
		ctx, cancel := context.WithCancel(t.Context())
		var started time.Time
		c.before = func(work context.Context, _ []change.Record) (int, error) {
			started = time.Now()
			cancel()
			<-work.Done()
			return 0, work.Err()
		}
		r := newTestReader(t, f, newLeases(), c, func(cfg *Config) { cfg.StopTimeout = 7 * time.Second })
		if err := r.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(started); took != 7*time.Second {
			t.Errorf("the stop took %s, want 7s", took)
		}
	})
}

func TestDrainThatIsStoppedDoesNotClaimToBeDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFakeStream(), &collector{}
		f.write(f.open("shard", ""), "item", 1)
		c.before = func(context.Context, []change.Record) (int, error) { return 0, errors.New("never") }
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := newTestReader(t, f, newLeases(), c).Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Drain returned %v, want the context's cause", err)
		}
	})
}

func TestDrainWaitsUntilAnOpenShardStaysEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFakeStream(), &collector{}
		s := f.open("shard", "")
		f.write(s, "item", 1)
		time.AfterFunc(500*time.Millisecond, func() { f.write(s, "item", 1) }) // while the polls are being counted
		// Five empty polls take 1.2 s at least.
		time.AfterFunc(1600*time.Millisecond, func() {
			f.write(s, "item", 1)
			f.close(s)
			f.write(f.open("child", "shard"), "item", 1)
		})
		if err := newTestReader(t, f, newLeases(), c).Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantItems(t, c, map[string]int{"item": 4})
		if got := len(f.calls("GetRecords child")); got < 5 {
			t.Errorf("the child was polled %d times, want at least 5", got)
		}
	})
}

func TestDrainReadsAClosedShardToItsEndHoweverManyPagesAreEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFakeStream(), &collector{}
		s := f.open("shard", "")
		f.write(s, "item", 3)
		f.close(s)
		f.open("child", "shard")
		s.empties = 100
		if err := newTestReader(t, f, newLeases(), c).Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantItems(t, c, map[string]int{"item": 3})
	})
}

func TestDrainEndsAtAShardThatIsCalledClosedButStaysOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFakeStream(), &collector{}
		s := f.open("shard", "")
		f.write(s, "item", 3)
		f.close(s)
		s.empties = 1 << 30 // it has no child, and never a nil next iterator
		if err := newTestReader(t, f, newLeases(), c).Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestTheNextPageIsFetchedWhileOneIsProcessed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFakeStream(), &collector{}
		f.pageMax, f.latency = 10, time.Minute
		s := f.open("shard", "")
		f.write(s, "item", 100)
		f.close(s)
		c.before = func(_ context.Context, records []change.Record) (int, error) {
			time.Sleep(time.Minute)
			return len(records), nil
		}
		started := time.Now()
		if err := newTestReader(t, f, newLeases(), c).Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantItems(t, c, map[string]int{"item": 100})
		if took := time.Since(started); took > 12*time.Minute {
			t.Errorf("ten pages took %s, want about eleven minutes", took)
		}
		if f.together != 1 {
			t.Errorf("%d calls on one shard at a time", f.together)
		}
	})
}

func TestDescribeStreamStaysBelowItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeStream()
		f.shardsPage = 1
		for i := range 200 { // all end at about the same time
			f.close(f.open(fmt.Sprintf("shard%03d", i), ""))
		}
		started := time.Now()
		if err := newTestReader(t, f, newLeases(), &collector{}).Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		perSecond := float64(len(f.calls("DescribeStream"))) / time.Since(started).Seconds()
		if perSecond > 10 {
			t.Errorf("%.1f calls a second", perSecond)
		}
	})
}

func TestADisabledStreamIsReadToItsEnd(t *testing.T) {
	for _, drain := range []bool{false, true} {
		t.Run(fmt.Sprintf("drain=%t", drain), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, c := newFakeStream(), &collector{}
				f.pageMax = 2
				s := f.open("shard", "")
				f.write(s, "item", 9)
				f.status = streams.StreamStatusDisabled
				f.close(s)
				r := newTestReader(t, f, newLeases(), c)
				if drain {
					if err := r.Drain(t.Context()); err != nil {
						t.Fatal(err)
					}
				} else if err := r.Run(t.Context()); !errors.Is(err, ErrStreamEnded) {
					t.Fatalf("Run returned %v, want ErrStreamEnded", err)
				}
				wantItems(t, c, map[string]int{"item": 9})
			})
		})
	}
}

func TestAStreamThatIsEnabledAgainIsAFreshLineage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cp := newLeases()
		old, c := newFakeStream(), &collector{}
		old.write(old.open("shard1", ""), "item", 3)
		if err := newTestReader(t, old, cp, c).Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		f := newFakeStream()
		f.arn = strings.Replace(testARN, "2026-01-01", "2026-02-02", 1)
		f.write(f.open("shard2", "shard-of-nobody"), "item", 2) // its numbers start anew
		r := newTestReader(t, f, cp, c, func(cfg *Config) { cfg.StreamARN = f.arn })
		if err := r.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantItems(t, c, map[string]int{"item": 5})
	})
}

func TestOpenShardsBeyondConcurrencyTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeStream()
		f.latency = 10 * time.Millisecond
		for i := range 9 {
			f.write(f.open(fmt.Sprintf("shard%d", i), ""), fmt.Sprintf("item%d", i), 3)
		}
		working, most := 0, 0
		c := &collector{}
		c.before = func(_ context.Context, records []change.Record) (int, error) {
			f.change(func() { working++; most = max(most, working) })
			time.Sleep(time.Second)
			f.change(func() { working-- })
			return len(records), nil
		}
		if err := newTestReader(t, f, newLeases(), c, func(cfg *Config) { cfg.Concurrency = 2 }).Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if c.count() != 27 || most != 2 {
			t.Errorf("%d records done, %d shards at once; want 27 and 2", c.count(), most)
		}
	})
}

func TestBatchesHoldAtMostBatchMaxInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFakeStream(), &collector{}
		f.write(f.open("shard", ""), "item", 10)
		if err := newTestReader(t, f, newLeases(), c, func(cfg *Config) { cfg.BatchMax = 4 }).Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantItems(t, c, map[string]int{"item": 10})
		if !slices.Equal(c.batches, []int{4, 4, 2}) {
			t.Errorf("batches %v", c.batches)
		}
	})
}

func TestCheckpointsAreRateLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c, cp := newFakeStream(), &collector{}, newLeases()
		f.write(f.open("shard", ""), "item", 500)
		c.before = func(_ context.Context, records []change.Record) (int, error) {
			time.Sleep(10 * time.Millisecond)
			return len(records), nil
		}
		if err := newTestReader(t, f, cp, c, func(cfg *Config) { cfg.BatchMax = 1 }).Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := leaseOf(t, cp, "shard").Counter; n > 12 {
			t.Errorf("%d writes to the lease within 10 seconds", n)
		}
	})
}

func TestAReaderRunsOnceAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeStream()
		f.open("shard", "")
		r := newTestReader(t, f, newLeases(), &collector{})
		ctx, cancel := context.WithCancel(t.Context())
		first := make(chan error)
		go func() { first <- r.Run(ctx) }()
		synctest.Wait()
		if err := r.Run(ctx); err == nil {
			t.Error("a second Run beside the first returned nil")
		}
		cancel()
		if err := <-first; err != nil {
			t.Error(err)
		}
	})
}
