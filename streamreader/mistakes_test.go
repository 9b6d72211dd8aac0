package streamreader

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/dynamosim"
)

// The mistakes that readers of these streams have made, and the tests that show
// that this one does not make them:
//
//	DescribeStream not paginated                      TestDescribeStreamNotPaginated
//	an expired iterator looped for ever               TestExpiredIteratorLoopedForEver
//	a deleted shard retried for ever                  TestDeletedShardRetriedForEver
//	children opened at LATEST                         TestChildrenOpenedAtLatest
//	every second generation of shards skipped         TestEverySecondGenerationSkipped, TestGenerationThatCameAndWentUnreadIsLoud
//	records beside a nil next iterator dropped        TestRecordsDroppedBesideANilNextIterator
//	a partly read closed shard marked finished        TestPartlyReadClosedShardMarkedFinished
//	trimmed data, or a shard that is not found,
//	taken for the end of the shard                    TestTrimmedDataTakenForTheEndOfTheShard, TestAReaderThatWasAwayForTooLongSaysSo
//	idle for ever after SHARD_END                     TestIdleForEverAfterShardEnd
//	a child not blocked where the parent has no row   TestChildNotBlockedWhenTheParentsLeaseIsMissing
//	acknowledgements with gaps checkpointed           TestNonContiguousAcknowledgementsCheckpointed
//	sequence numbers compared as strings              TestSequenceNumbersComparedAsStrings
//	two consumers on one shard after a refresh        TestTwoConsumersOnOneShardAfterARefreshRace, TestThreeReadersShareEightShards
//	a worker that cannot reclaim its own lease        TestWorkerThatCannotReclaimItsOwnLease, TestALeaseThatADeadWorkerHasLeftIsTaken
//	running for days while dead                       TestRunningWhileDead, TestAWorkerIsNotCaughtUpWhileAnotherIsBehind

func wantItems(t *testing.T, c *collector, want map[string]int) {
	t.Helper()
	if got := c.items(t); !maps.Equal(got, want) {
		t.Errorf("records done per item: %v, want %v", got, want)
	}
}

func TestDescribeStreamNotPaginated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFakeStream(), &collector{}
		f.shardsPage = 2
		want := map[string]int{}
		for i := range 7 {
			item := fmt.Sprintf("item%d", i)
			f.write(f.open(fmt.Sprintf("shard%d", i), ""), item, 3)
			want[item] = 3
		}
		if err := newTestReader(t, f, NewMemoryCheckpoints(), c).Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantItems(t, c, want)
	})
}

func TestExpiredIteratorLoopedForEver(t *testing.T) {
	for _, pageMax := range []int{1000, 100} {
		t.Run(fmt.Sprintf("pages of %d", pageMax), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, c := newFakeStream(), &collector{}
				f.pageMax = pageMax
				s := f.open("shard", "")
				f.write(s, "item", 1000+pageMax)
				time.AfterFunc(10*time.Minute, func() { f.write(s, "item", 50) })
				// The first page takes longer than an iterator lives: by then a batch
				// has long been read ahead, and the iterator behind it is too old.
				var once sync.Once
				c.before = func(_ context.Context, records []change.Record) (int, error) {
					once.Do(func() { time.Sleep(16 * time.Minute) })
					return len(records), nil
				}
				if err := newTestReader(t, f, NewMemoryCheckpoints(), c).Drain(t.Context()); err != nil {
					t.Fatal(err)
				}
				wantItems(t, c, map[string]int{"item": 1050 + pageMax})
				opened := f.calls("GetShardIterator shard AFTER_SEQUENCE_NUMBER")
				if want := *s.records[999+pageMax].Dynamodb.SequenceNumber; len(opened) != 1 || !strings.HasSuffix(opened[0], want) {
					t.Errorf("new iterators %v, want one behind the last record done, %s", opened, want)
				}
			})
		})
	}
}

func TestDeletedShardRetriedForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFakeStream(), &collector{}
		s := f.open("shard", "")
		f.write(s, "item", 3)
		r := newTestReader(t, f, NewMemoryCheckpoints(), c)
		time.AfterFunc(10*time.Second, func() { f.change(func() { s.gone = true }) })
		err := r.Run(t.Context())
		var trimmed *TrimmedError
		if !errors.As(err, &trimmed) || trimmed.Shard != "shard" || trimmed.Checkpoint != *s.records[2].Dynamodb.SequenceNumber {
			t.Errorf("Run returned %v, want a TrimmedError that names the shard and its checkpoint", err)
		}
	})
}

func TestChildrenOpenedAtLatest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFakeStream(), &collector{}
		parent := f.open("parent", "")
		f.write(parent, "item", 2)
		time.AfterFunc(5*time.Second, func() {
			f.write(parent, "item", 2)
			f.close(parent)
			f.write(f.open("child", "parent"), "item", 5) // long before the reader knows of it
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := newTestReader(t, f, NewMemoryCheckpoints(), c).Run(ctx); err != nil {
			t.Fatal(err)
		}
		wantItems(t, c, map[string]int{"item": 9})
		if got := f.calls("GetShardIterator child"); len(got) == 0 || got[0] != "GetShardIterator child TRIM_HORIZON" {
			t.Errorf("child opened by %v", got)
		}
	})
}

func TestEverySecondGenerationSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c, cp := newFakeStream(), &collector{}, NewMemoryCheckpoints()
		parent := ""
		for generation := range 8 {
			id := fmt.Sprintf("shard%d", generation)
			s := f.open(id, parent)
			f.write(s, "item", 3)
			if generation < 7 {
				f.close(s)
			}
			parent = id
		}
		if err := newTestReader(t, f, cp, c).Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantItems(t, c, map[string]int{"item": 24})
		if l := leaseOf(t, cp, "shard3"); !slices.Equal(l.Children, []string{"shard4"}) || l.Parent != "shard2" {
			t.Errorf("lease of shard3 names parent %q and children %v", l.Parent, l.Children)
		}
	})
}

func TestRecordsDroppedBesideANilNextIterator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c, cp := newFakeStream(), &collector{}, NewMemoryCheckpoints()
		s := f.open("shard", "")
		f.write(s, "item", 7)
		f.close(s) // its only page has all records and no next iterator
		failures := 2
		c.before = func(_ context.Context, records []change.Record) (int, error) {
			if l := leaseOf(t, cp, "shard"); l.Finished() {
				t.Error("the shard was marked finished before its records were done")
			}
			if failures > 0 {
				failures--
				return 1, errors.New("not now")
			}
			return len(records), nil
		}
		if err := newTestReader(t, f, cp, c).Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantItems(t, c, map[string]int{"item": 7})
		if l := leaseOf(t, cp, "shard"); !l.Finished() {
			t.Errorf("checkpoint %s, want %s", l.Checkpoint, ShardEnd)
		}
	})
}

func TestPartlyReadClosedShardMarkedFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c, cp := newFakeStream(), &collector{}, NewMemoryCheckpoints()
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

func TestIdleForEverAfterShardEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFakeStream(), &collector{}
		parent := f.open("parent", "")
		f.write(parent, "item", 2)
		f.close(parent)
		child := f.open("child", "parent")
		child.hidden = true // listed a little later than its parent's end
		time.AfterFunc(2*time.Second, func() { f.change(func() { child.hidden = false }) })
		time.AfterFunc(3*time.Second, func() { f.write(child, "item", 4) })
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := newTestReader(t, f, NewMemoryCheckpoints(), c).Run(ctx); err != nil {
			t.Fatal(err)
		}
		wantItems(t, c, map[string]int{"item": 6})
	})
}

func TestChildNotBlockedWhenTheParentsLeaseIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c, cp := newFakeStream(), &collector{}, NewMemoryCheckpoints()
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
		f, c, cp := newFakeStream(), &collector{}, NewMemoryCheckpoints()
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
		f, c, cp := newFakeStream(), &collector{}, NewMemoryCheckpoints()
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
		if err := newTestReader(t, f, NewMemoryCheckpoints(), c, func(cfg *Config) { cfg.ListInterval = time.Second }).Run(ctx); err != nil {
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

// Nobody else is there when the leases expire, and the process lives on.
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
		f, c, cp := newFakeStream(), &collector{}, NewMemoryCheckpoints()
		f.write(f.open("shard", ""), "item", 3)
		// A process that crashed has left the lease as its own.
		if _, err := cp.Create(t.Context(), Lease{Shard: "shard", Stream: testARN, Owner: "crashed", Counter: 41, Checkpoint: TrimHorizon}); err != nil {
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

func TestRunningWhileDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFakeStream(), &collector{}
		f.write(f.open("healthy", ""), "a", 3)
		f.write(f.open("stuck", ""), "b", 3)
		started := time.Now()
		f.fault = func(call, shard string) error {
			if call == "GetRecords" && shard == "stuck" {
				return &streams.InternalServerError{}
			}
			return nil
		}
		r := newTestReader(t, f, NewMemoryCheckpoints(), c)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		time.AfterFunc(50*time.Minute, func() {
			if st := r.Stats(); st.Open != 2 || time.Since(st.LastProgress) < 49*time.Minute {
				t.Errorf("after 50 minutes with a stuck shard: %+v, started %s", st, started)
			}
			if calls := len(f.calls("GetRecords stuck")); calls > 400 {
				t.Errorf("%d calls on the stuck shard in 50 minutes: want waits between them", calls)
			}
			f.change(func() { f.fault = nil })
		})
		time.AfterFunc(55*time.Minute, func() {
			if st := r.Stats(); time.Since(st.LastProgress) > 10*time.Second || st.Lag != 0 || st.Records != 6 {
				t.Errorf("after the recovery: %+v", st)
			}
		})
		if err := r.Run(ctx); err != nil {
			t.Fatal(err)
		}
	})
}

// overtaken lets another process finish a shard between this one's plan and its row.
type overtaken struct{ Checkpoints }

func (c overtaken) Create(ctx context.Context, l Lease) (Lease, error) {
	if l.Shard == "parent" {
		l.Checkpoint = ShardEnd
	}
	return c.Checkpoints.Create(ctx, l)
}

func TestAShardThatAnotherProcessFinishedAfterThePlanIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFakeStream(), &collector{}
		parent := f.open("parent", "")
		f.write(parent, "done", 3)
		f.close(parent)
		f.write(f.open("child", "parent"), "next", 2)
		if err := newTestReader(t, f, overtaken{NewMemoryCheckpoints()}, c).Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantItems(t, c, map[string]int{"next": 2})
	})
}
