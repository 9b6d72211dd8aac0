package streamreader

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/dynamill/dynamill/internal/pace"
	"github.com/dynamill/dynamill/internal/sim/worldsize"

	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/dynamill/dynamill/change"
)

// openFull adds a shard with n records of a size, of which a page has as many as fit.
func openFull(f *fakeStream, id string, n int, size int64) *fakeShard {
	f.pageMax = int(1 << 20 / size)
	s := f.open(id, "")
	f.write(s, id, n)
	for i := range s.records {
		s.records[i].Dynamodb.SizeBytes = &size
	}
	return s
}

// isOf tells batches of shards whose names, and items, begin alike.
func isOf(records []change.Record, name string) bool {
	return strings.HasPrefix(records[0].Key.Partition, name)
}

func TestSlowShardsLeaveRoomToOthersWhileATurnIsFree(t *testing.T) {
	variants := []struct {
		slow int
		size int64
	}{{4, 4 << 10}, {1, 40 << 10}, {4, 40 << 10}, {15, 4 << 10}, {15, 40 << 10}}
	for _, v := range variants[:worldsize.Of(5, 3)] {
		t.Run(fmt.Sprintf("%d with records of %d KiB", v.slow, v.size>>10), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, c := newFakeStream(), &collector{}
				f.latency = 10 * time.Millisecond
				for i := range v.slow {
					openFull(f, fmt.Sprint("slow", i), 5000, v.size)
				}
				quiet := f.open("quiet", "")
				var written time.Time
				var took time.Duration
				c.before = func(_ context.Context, records []change.Record) (int, error) {
					if isOf(records, "slow") {
						time.Sleep(10 * time.Minute)
					} else {
						took = time.Since(written)
					}
					return len(records), nil
				}
				time.AfterFunc(5*time.Minute, func() { written = time.Now(); f.write(quiet, "quiet", 1) })
				ctx, cancel := contextFor(t, 30*time.Minute)
				defer cancel()
				if err := newTestReader(t, f, newLeases(), c, func(cfg *Config) { cfg.StopTimeout = time.Hour }).Run(ctx); err != nil {
					t.Fatal(err)
				}
				if took == 0 || took > 2*time.Second {
					t.Errorf("the quiet shard's record was processed %s after it was written", took)
				}
			})
		})
	}
}

func TestAFailingShardDoesNotKeepItsRoomUntilItsNextTry(t *testing.T) {
	for _, mib := range []int64{1, 32} {
		t.Run(fmt.Sprintf("%d MiB", mib), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, c := newFakeStream(), &collector{}
				f.latency = 10 * time.Millisecond
				openFull(f, "bad", 5000, 40<<10)
				quiet := f.open("quiet", "")
				var mu sync.Mutex
				var written time.Time
				var longest time.Duration
				c.before = func(_ context.Context, records []change.Record) (int, error) {
					if isOf(records, "bad") {
						return 0, errors.New("not now")
					}
					mu.Lock()
					defer mu.Unlock()
					longest = max(longest, time.Since(written))
					return len(records), nil
				}
				ctx, cancel := contextFor(t, time.Hour)
				defer cancel()
				var writer sync.WaitGroup
				defer writer.Wait()
				writer.Go(func() {
					for pace.Sleep(ctx, time.Minute+1300*time.Millisecond) == nil {
						mu.Lock()
						written = time.Now()
						mu.Unlock()
						f.write(quiet, "quiet", 1)
					}
				})
				if err := newTestReader(t, f, newLeases(), c, func(cfg *Config) { cfg.BufferMax = mib << 20 }).Run(ctx); err != nil {
					t.Fatal(err)
				}
				if c.count() < 50 || longest > 2*time.Second {
					t.Errorf("%d records of the quiet shard were processed, up to %s after they were written", c.count(), longest)
				}
			})
		})
	}
}

// hangs is a stream that never answers for the pages of one shard.
type hangs struct{ *fakeStream }

func (h hangs) GetRecords(ctx context.Context, in *dynamodbstreams.GetRecordsInput,
	opts ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error) {
	if strings.HasPrefix(*in.ShardIterator, "hangs|") {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return h.fakeStream.GetRecords(ctx, in, opts...)
}

func TestACallThatHangsGivesItsRoomBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFakeStream(), &collector{}
		f.open("hangs", "")
		other := f.open("other", "")
		time.AfterFunc(time.Minute, func() { f.write(other, "other", 3) })
		ctx, cancel := contextFor(t, 2*time.Minute)
		defer cancel()
		r := newTestReader(t, hangs{f}, newLeases(), c, func(cfg *Config) { cfg.BufferMax = 1 << 20 })
		if err := r.Run(ctx); err != nil {
			t.Fatal(err)
		}
		wantItems(t, c, map[string]int{"other": 3})
	})
}

func TestWaitingForRoomIsNoSilenceOfTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFakeStream(), &collector{before: slowly(time.Minute)}
		f.latency = 10 * time.Millisecond
		openFull(f, "slow", 5000, 40<<10)
		f.open("quiet", "")
		failed := 0
		f.fault = func(call, shard string) error {
			if call == "GetRecords" && shard == "quiet" && failed < 2 {
				failed++
				return &streams.LimitExceededException{}
			}
			return nil
		}
		var log bytes.Buffer
		ctx, cancel := contextFor(t, 10*time.Minute)
		defer cancel()
		r := newTestReader(t, f, newLeases(), c, func(cfg *Config) {
			cfg.StopTimeout, cfg.BufferMax = time.Hour, 1<<20
			cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		})
		if err := r.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if failed != 2 || strings.Contains(log.String(), "given back") {
			t.Errorf("%d calls failed, a minute apart for want of room:\n%s", failed, log.String())
		}
	})
}

func TestWaitingShardSavesItsCheckpoint(t *testing.T) {
	for name, configure := range map[string]func(*Config){
		"for room":   func(cfg *Config) { cfg.BufferMax, cfg.BatchMax = 1<<20, 10 },
		"for a turn": func(cfg *Config) { cfg.Concurrency = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, c, cp := newFakeStream(), &collector{}, newLeases()
				f.latency = 10 * time.Millisecond
				openFull(f, "slow", 5000, 40<<10)
				openFull(f, "other", 5000, 40<<10)
				var mu sync.Mutex
				done, last := 0, ""
				c.before = func(_ context.Context, records []change.Record) (int, error) {
					if isOf(records, "slow") {
						time.Sleep(10 * time.Minute)
						return len(records), nil
					}
					mu.Lock()
					defer mu.Unlock()
					done += len(records)
					last = records[len(records)-1].Position.String()
					return len(records), nil
				}
				for i := range 5 {
					time.AfterFunc(time.Duration(10*i+15)*time.Minute, func() {
						saved := leaseOf(t, cp, "other").Checkpoint
						mu.Lock()
						defer mu.Unlock()
						if done > 0 && !strings.Contains(last, saved) {
							t.Errorf("%d records are done up to %s, the checkpoint says %s", done, last, saved)
						}
					})
				}
				ctx, cancel := contextFor(t, 2*time.Hour) // whichever comes first, the other has had its second page by then
				defer cancel()
				if err := newTestReader(t, f, cp, c, configure, func(cfg *Config) { cfg.StopTimeout = time.Hour }).Run(ctx); err != nil {
					t.Fatal(err)
				}
				if done < 50 {
					t.Errorf("%d records of the other shard are done, want several pages", done)
				}
			})
		})
	}
}
