package streamreader

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/sim/worldsize"
)

func slowly(wait time.Duration) func(context.Context, []change.Record) (int, error) {
	return func(_ context.Context, records []change.Record) (int, error) {
		time.Sleep(wait)
		return len(records), nil
	}
}

func TestSmallPagesAreReadAheadUntilABatchWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFakeStream(), &collector{before: slowly(time.Minute)}
		f.pageMax, f.latency = 10, time.Second
		s := f.open("shard", "")
		f.write(s, "item", 1000)
		f.close(s)
		time.Sleep(time.Minute) // so that the shard is behind
		started := time.Now()
		time.AfterFunc(50*time.Second, func() { // while the first page is being processed
			if calls := len(f.calls("GetRecords")); calls != 11 {
				t.Errorf("%d pages were fetched, want the first and a batch of ten", calls)
			}
		})
		if err := newTestReader(t, f, newLeases(), c, func(cfg *Config) { cfg.BatchMax = 100 }).Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantItems(t, c, map[string]int{"item": 1000})
		if took := time.Since(started); took > 12*time.Minute {
			t.Errorf("ten batches took %s, want about eleven minutes", took)
		}
	})
}

// weighed is a stream and a processor that know what was handed out and is not done.
type weighed struct {
	*fakeStream
	mu                    sync.Mutex
	held, most            int // records
	calls, together, ever int // of GetRecords
}

func (w *weighed) GetRecords(ctx context.Context, in *dynamodbstreams.GetRecordsInput,
	opts ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error) {
	w.mu.Lock()
	w.calls++
	w.ever++
	w.together = max(w.together, w.calls)
	w.mu.Unlock()
	out, err := w.fakeStream.GetRecords(ctx, in, opts...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls--
	if err == nil {
		w.held += len(out.Records)
		w.most = max(w.most, w.held)
	}
	return out, err
}

func (w *weighed) done(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held -= n
}

func TestBufferOfAllShardsIsBounded(t *testing.T) {
	for _, pages := range []int{1, 8} {
		t.Run(fmt.Sprintf("%d MiB", pages), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, c := &weighed{fakeStream: newFakeStream()}, &collector{}
				w.latency = 10 * time.Millisecond
				shards := worldsize.Of(25, 9)
				for i := range shards {
					s := w.open(fmt.Sprintf("shard%03d", i), "")
					w.write(s, fmt.Sprintf("item%d", i), 1500)
					w.close(s)
				}
				blocked, blockedCalls := make(chan struct{}), 0
				c.before = func(_ context.Context, records []change.Record) (int, error) {
					<-blocked
					time.Sleep(50 * time.Millisecond)
					w.done(len(records))
					return len(records), nil
				}
				time.AfterFunc(time.Minute, func() { w.mu.Lock(); blockedCalls = w.ever; w.mu.Unlock() })
				time.AfterFunc(time.Hour, func() {
					w.mu.Lock()
					defer w.mu.Unlock()
					if w.ever != blockedCalls || blockedCalls != pages {
						t.Errorf("%d calls for pages after a minute, %d after an hour, want %d while nothing is done", blockedCalls, w.ever, pages)
					}
					close(blocked)
				})
				r := newTestReader(t, w, newLeases(), c, func(cfg *Config) {
					cfg.BufferMax, cfg.Concurrency, cfg.LeaseTerm = int64(pages)<<20, 4, time.Minute
				})
				if err := r.Drain(t.Context()); err != nil {
					t.Fatal(err)
				}
				if c.count() != shards*1500 {
					t.Errorf("%d records done, want %d", c.count(), shards*1500)
				}
				if most := pages * (1 << 20 / (1 << 10)); w.most > most || w.together > pages {
					t.Errorf("%d records held and %d calls at once, want at most %d and %d", w.most, w.together, most, pages)
				}
			})
		})
	}
}

func TestAShardThatFailsMakesRoomForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c, cp := newFakeStream(), &collector{}, newLeases()
		bad := f.open("bad", "")
		f.write(bad, "bad", 2000)
		bad.start = "" // it is not known to be whole
		good := f.open("good", "")
		var mended atomic.Bool
		c.before = func(_ context.Context, records []change.Record) (int, error) {
			if !mended.Load() && records[0].Key.Partition == "bad" {
				return 0, errors.New("not now")
			}
			return len(records), nil
		}
		time.AfterFunc(time.Minute, func() { f.write(good, "good", 5) })
		time.AfterFunc(3*time.Minute, func() {
			wantItems(t, c, map[string]int{"good": 5})
			mended.Store(true)
		})
		ctx, cancel := contextFor(t, 10*time.Minute)
		defer cancel()
		if err := newTestReader(t, f, cp, c, func(cfg *Config) { cfg.BufferMax = 1 << 20 }).Run(ctx); err != nil {
			t.Fatal(err)
		}
		wantItems(t, c, map[string]int{"good": 5, "bad": 2000})
		if opened := f.calls("GetShardIterator bad TRIM_HORIZON"); len(opened) != 1 {
			t.Errorf("opened at the horizon %d times, want once: that skips what was trimmed meanwhile", len(opened))
		}
	})
}

func TestRecordsThatWerePutBackAndTrimmedAreALoudError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFakeStream(), &collector{}
		bad := f.open("bad", "")
		f.write(bad, "bad", 20)
		bad.start = "" // it is not known to be whole
		f.open("good", "")
		c.before = func(context.Context, []change.Record) (int, error) { return 0, errors.New("never") }
		time.AfterFunc(10*time.Minute, func() { f.change(func() { bad.trimmed = 10 }) })
		ctx, cancel := contextFor(t, time.Hour)
		defer cancel()
		err := newTestReader(t, f, newLeases(), c, func(cfg *Config) { cfg.BufferMax = 1 << 20 }).Run(ctx)
		var trimmed *TrimmedError
		if !errors.As(err, &trimmed) || trimmed.Shard != "bad" {
			t.Errorf("Run returned %v, want a TrimmedError", err)
		}
	})
}

func TestPagesReadAheadAreDroppedWithTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c, cp := newFakeStream(), &collector{}, newLeases()
		f.pageMax, f.latency = 10, 10*time.Millisecond
		f.write(f.open("shard", ""), "item", 100)
		time.Sleep(time.Minute) // so that the shard is behind
		c.before = func(ctx context.Context, records []change.Record) (int, error) {
			time.Sleep(time.Second)
			steal(t, cp, "shard")
			return len(records), nil
		}
		ctx, stop := context.WithTimeout(t.Context(), testTerm/2)
		defer stop()
		if err := newTestReader(t, f, cp, c).Run(ctx); err != nil {
			t.Error(err)
		}
		if calls := len(f.calls("GetRecords")); c.count() != 10 || calls < 10 {
			t.Errorf("%d records done of %d pages that were there, want the first 10", c.count(), calls)
		}
	})
}

func TestAPageThatCannotBeReadIsJudgedBehindThoseBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFakeStream(), &collector{}
		f.pageMax = 10
		s := f.open("shard", "")
		f.write(s, "item", 50)
		s.records[35].Dynamodb.Keys = nil
		time.Sleep(time.Minute) // so that the shard is behind, and pages are gathered
		err := newTestReader(t, f, newLeases(), c).Run(t.Context())
		var bad *RecordError
		if !errors.As(err, &bad) {
			t.Errorf("Run returned %v, want a RecordError", err)
		}
		wantItems(t, c, map[string]int{"item": 30})
	})
}

func TestIdleShardsArePolledSeldomAndNotInStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeStream()
		const shards = 100
		for i := range shards {
			f.open(fmt.Sprintf("shard%03d", i), "")
		}
		ctx, cancel := contextFor(t, 2*time.Minute)
		defer cancel()
		var polls []time.Time
		began := time.Now()
		f.fault = func(call, _ string) error {
			if call == "GetRecords" && time.Since(began) > time.Minute {
				polls = append(polls, time.Now())
			}
			return nil
		}
		if err := newTestReader(t, f, newLeases(), &collector{}).Run(ctx); err != nil {
			t.Fatal(err)
		}
		if perSecond := float64(len(polls)) / 60 / shards; perSecond < 1 || perSecond > 1.25 {
			t.Errorf("%.2f polls a second of each shard, want one each 0.8 to 1 s", perSecond)
		}
		most := 0
		for i, from := 0, 0; i < len(polls); i++ {
			for polls[i].Sub(polls[from]) >= 100*time.Millisecond {
				from++
			}
			most = max(most, i-from+1)
		}
		if most > shards/3 {
			t.Errorf("%d of %d shards were polled within a tenth of a second", most, shards)
		}
	})
}

func TestDrainReadsRecordsOfItsLastBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFakeStream(), &collector{}
		f.latency = 50 * time.Millisecond
		s := f.open("shard", "")
		f.write(s, "source", 1)
		c.before = func(_ context.Context, records []change.Record) (int, error) {
			time.Sleep(time.Second)
			if strings.HasPrefix(records[0].Key.Partition, "source") {
				f.write(s, "derived", 1)
			}
			return len(records), nil
		}
		if err := newTestReader(t, f, newLeases(), c, func(cfg *Config) { cfg.DrainPolls = 1 }).Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantItems(t, c, map[string]int{"source": 1, "derived": 1})
	})
}

func TestShardsThatAreGivenAwayGiveTheirRoomBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, cp, c := newFakeStream(), newLeases(), &collector{before: slowly(100 * time.Millisecond)}
		const records = 30_000
		for _, id := range []string{"one", "two"} {
			s := f.open(id, "")
			f.write(s, id, records)
			f.close(s)
		}
		worker := func(name string) *Reader {
			return newTestReader(t, f, cp, c, func(cfg *Config) { cfg.WorkerID, cfg.BufferMax, cfg.BatchMax = name, 4<<20, 10 })
		}
		ctx, cancel := contextFor(t, 20*time.Minute)
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- worker("stays").Run(ctx) }()
		for range 6 {
			time.Sleep(5 * time.Second)
			guest, leave := contextFor(t, 10*time.Second)
			if err := worker("guest").Run(guest); err != nil {
				t.Error(err)
			}
			leave()
		}
		if done := c.count(); done == 2*records {
			t.Error("everything was done before all shards were given away")
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		wantItems(t, c, map[string]int{"one": records, "two": records})
	})
}
