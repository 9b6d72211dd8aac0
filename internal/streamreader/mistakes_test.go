package streamreader

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/dynamill/dynamill/change"
)

// The mistakes that readers of these streams have made, and the tests that show
// that this one does not make them, here and, of checkpoints and leases, in
// mistakes_leases_test.go:
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
		if err := newTestReader(t, f, newLeases(), c).Drain(t.Context()); err != nil {
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
				time.Sleep(time.Minute) // so that small pages are read ahead, too
				time.AfterFunc(10*time.Minute, func() { f.write(s, "item", 50) })
				// The first page takes longer than an iterator lives: by then a batch
				// has long been read ahead, and the iterator behind it is too old.
				var once sync.Once
				c.before = func(_ context.Context, records []change.Record) (int, error) {
					once.Do(func() { time.Sleep(16 * time.Minute) })
					return len(records), nil
				}
				if err := newTestReader(t, f, newLeases(), c).Drain(t.Context()); err != nil {
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
		r := newTestReader(t, f, newLeases(), c)
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
		if err := newTestReader(t, f, newLeases(), c).Run(ctx); err != nil {
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
		f, c, cp := newFakeStream(), &collector{}, newLeases()
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
		f, c, cp := newFakeStream(), &collector{}, newLeases()
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

// withHiddenChild closes a shard with two records of "item", and returns its child, which is listed two seconds later.
func withHiddenChild(f *fakeStream) *fakeShard {
	parent := f.open("parent", "")
	f.write(parent, "item", 2)
	f.close(parent)
	child := f.open("child", "parent")
	child.hidden = true
	time.AfterFunc(2*time.Second, func() { f.change(func() { child.hidden = false }) })
	return child
}

// TestDrainWaitsForAChildThatIsNotListedYet has records in a child before the drain begins.
func TestDrainWaitsForAChildThatIsNotListedYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFakeStream(), &collector{}
		f.write(withHiddenChild(f), "item", 4)
		if err := newTestReader(t, f, newLeases(), c).Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantItems(t, c, map[string]int{"item": 6})
	})
}

func TestIdleForEverAfterShardEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFakeStream(), &collector{}
		child := withHiddenChild(f)
		time.AfterFunc(3*time.Second, func() { f.write(child, "item", 4) })
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := newTestReader(t, f, newLeases(), c).Run(ctx); err != nil {
			t.Fatal(err)
		}
		wantItems(t, c, map[string]int{"item": 6})
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
		r := newTestReader(t, f, newLeases(), c)
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
