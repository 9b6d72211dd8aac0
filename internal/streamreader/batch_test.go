package streamreader

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynamill/dynamill/change"
)

func TestPagesOfAShardThatIsBehindBecomeOneBatch(t *testing.T) {
	for _, test := range []struct {
		name     string
		latency  time.Duration
		batchMax int
		want     []int
	}{
		{"up to its size", time.Millisecond, 35, []int{10, 30, 30, 30}},
		{"up to its time", 40 * time.Millisecond, 1000, []int{10, 30, 30, 30}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, c := newFakeStream(), &collector{}
				f.pageMax, f.latency = 10, test.latency
				s := f.open("shard", "")
				f.write(s, "item", 100)
				f.close(s)
				time.Sleep(time.Minute)
				if err := newTestReader(t, f, newLeases(), c, func(cfg *Config) { cfg.BatchMax = test.batchMax }).Drain(t.Context()); err != nil {
					t.Fatal(err)
				}
				wantItems(t, c, map[string]int{"item": 100})
				if !slices.Equal(c.batches, test.want) {
					t.Errorf("batches %v, want %v", c.batches, test.want)
				}
			})
		})
	}
}

func TestALoneRecordIsNotHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFakeStream(), &collector{}
		f.latency = 90 * time.Millisecond
		f.write(f.open("shard", ""), "item", 1)
		time.Sleep(time.Minute)
		var asked, given time.Time
		f.fault = func(call, _ string) error {
			if call == "GetRecords" && asked.IsZero() {
				asked = time.Now()
			}
			return nil
		}
		c.before = func(_ context.Context, records []change.Record) (int, error) {
			given = time.Now()
			return len(records), nil
		}
		if err := newTestReader(t, f, newLeases(), c).Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := given.Sub(asked); took != f.latency {
			t.Errorf("the record was processed %s after its page was asked for, which took %s", took, f.latency)
		}
	})
}

// A shard with small pages is asked four to five times a second, and nothing else holds its records back.
func TestBusyShardIsAskedAQuarterSecondLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFakeStream(), &collector{}
		f.latency = 20 * time.Millisecond
		s := f.open("shard", "")
		ctx, cancel := contextFor(t, 20*time.Second)
		defer cancel()
		var written []time.Time
		var writer sync.WaitGroup
		defer writer.Wait()
		writer.Go(func() {
			for ctx.Err() == nil {
				f.write(s, "item", 1)
				f.change(func() { written = append(written, time.Now()) })
				time.Sleep(5 * time.Millisecond)
			}
		})
		n, longest := 0, time.Duration(0)
		c.before = func(_ context.Context, records []change.Record) (int, error) {
			f.change(func() {
				for range records {
					if n++; n > 100 {
						longest = max(longest, time.Since(written[n-1]))
					}
				}
			})
			return len(records), nil
		}
		if err := newTestReader(t, f, newLeases(), c).Run(ctx); err != nil {
			t.Fatal(err)
		}
		if n < 1000 || longest > 250*time.Millisecond+2*f.latency {
			t.Errorf("%d records, processed up to %s after they were written, want 250 ms and two calls of %s", n, longest, f.latency)
		}
		if calls := len(f.calls("GetRecords")); calls > 20*5 {
			t.Errorf("%d calls in 20 s, want at most 5 a second", calls)
		}
	})
}

// Shards that always have more leave turns and room to others after each batch.
func TestAQuietShardWaitsForOneBatchOfEachBusyOne(t *testing.T) {
	for name, test := range map[string]struct {
		pageMax   int
		bytes     int64 // of each record
		bufferMax int64
	}{
		"pages of many batches": {1000, 0, 32 << 20},
		"room for two pages":    {10, 100 << 10, 2 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { quietBesideBusy(t, test.pageMax, test.bytes, test.bufferMax) })
		})
	}
}

func quietBesideBusy(t *testing.T, pageMax int, bytes, bufferMax int64) {
	const (
		busy, quiet = 3, 50
		slow        = 200 * time.Millisecond
	)
	f, c := newFakeStream(), &collector{}
	f.pageMax = pageMax
	for i := range busy {
		s := f.open(fmt.Sprintf("busy%d", i), "")
		f.write(s, fmt.Sprintf("busy%d", i), 5000)
		for i := range s.records {
			s.records[i].Dynamodb.SizeBytes = &bytes
		}
	}
	var shards []*fakeShard
	for i := range quiet {
		shards = append(shards, f.open(fmt.Sprintf("quiet%02d", i), ""))
	}
	written, longest, all := map[string]time.Time{}, time.Duration(0), 0
	c.before = func(_ context.Context, records []change.Record) (int, error) {
		item := records[0].Key.Partition
		var at time.Time
		f.change(func() { at = written[item] })
		if at.IsZero() {
			time.Sleep(slow)
			return len(records), nil
		}
		f.change(func() { longest, all = max(longest, time.Since(at)), all+1 })
		return len(records), nil
	}
	ctx, cancel := contextFor(t, time.Minute)
	defer cancel()
	go func() {
		for i, s := range shards {
			time.Sleep(700 * time.Millisecond)
			item := fmt.Sprintf("quiet%d", i)
			f.change(func() { written[item] = time.Now() })
			f.write(s, item, 1)
		}
	}()
	r := newTestReader(t, f, newLeases(), c, func(cfg *Config) {
		cfg.Concurrency, cfg.BatchMax, cfg.BufferMax = 2, 10, bufferMax
	})
	if err := r.Run(ctx); err != nil {
		t.Fatal(err)
	}
	// A round for the poll that finds nothing, one for the next, one for the batch.
	if longestMax := time.Second + 3*busy*slow/2; all != quiet || longest > longestMax {
		t.Errorf("%d of %d quiet shards' records were processed, up to %s after they were written, want %s", all, quiet, longest, longestMax)
	}
	if done := c.count() - all; done < 2*10*250 {
		t.Errorf("%d records of busy shards were done within a minute, by two at a time", done)
	}
}

func TestShardWithProgressIsRetriedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFakeStream(), &collector{}
		s := f.open("shard", "")
		f.write(s, "item", 1000)
		c.before = func(_ context.Context, records []change.Record) (int, error) {
			return min(10, len(records)), errors.New("throttled")
		}
		began := time.Now()
		if err := newTestReader(t, f, newLeases(), c).Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantItems(t, c, map[string]int{"item": 1000})
		if took := time.Since(began); took > 100*150*time.Millisecond {
			t.Errorf("a hundred tries, each with progress, took %s", took)
		}
	})
}
