package streamreader

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/dynamill/dynamill/change"
)

// refuseIterators answers GetRecords with a TrimmedDataAccessException as long as refuse says so.
func refuseIterators(f *fakeStream, refuse func() bool) {
	f.fault = func(call, _ string) error {
		if call == "GetRecords" && refuse() {
			return &streams.TrimmedDataAccessException{}
		}
		return nil
	}
}

func TestAnIteratorOfAnEmptyShardThatIsRefusedIsTakenAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFakeStream(), &collector{}
		s := f.open("shard", "")
		refused := 0
		start := time.Now()
		refuseIterators(f, func() bool {
			if refused == 0 && time.Since(start) > time.Minute {
				refused++
				return true
			}
			return false
		})
		time.AfterFunc(2*time.Minute, func() { f.write(s, "item", 5) })
		time.AfterFunc(3*time.Minute, func() { f.change(func() { s.closed = true }) })
		ctx, cancel := contextFor(t, 5*time.Minute)
		defer cancel()
		if err := newTestReader(t, f, newLeases(), c).Run(ctx); err != nil {
			t.Fatal(err)
		}
		wantItems(t, c, map[string]int{"item": 5})
		if refused != 1 {
			t.Errorf("refused %d times, want once", refused)
		}
	})
}

func TestAShardThatStaysTrimmedIsALoudError(t *testing.T) {
	for name, from := range map[string]time.Duration{"at every try": time.Minute, "from the first call on": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, c := newFakeStream(), &collector{}
				f.open("shard", "")
				start := time.Now()
				refuseIterators(f, func() bool { return time.Since(start) >= from })
				ctx, cancel := contextFor(t, time.Hour)
				defer cancel()
				err := newTestReader(t, f, newLeases(), c).Run(ctx)
				var trimmed *TrimmedError
				if !errors.As(err, &trimmed) || trimmed.Checkpoint != TrimHorizon {
					t.Errorf("Run returned %v, want a TrimmedError at the start of the shard", err)
				}
			})
		})
	}
}

func TestShardUnreadForHalfADayIsNotReopened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFakeStream(), &collector{}
		f.open("shard", "")
		start := time.Now()
		f.fault = func(call, _ string) error {
			if call != "GetRecords" || time.Since(start) < time.Minute {
				return nil
			}
			if time.Since(start) < 13*time.Hour {
				return &streams.LimitExceededException{}
			}
			return &streams.TrimmedDataAccessException{}
		}
		ctx, cancel := contextFor(t, 24*time.Hour)
		defer cancel()
		err := newTestReader(t, f, newLeases(), c, func(cfg *Config) {
			cfg.LeaseTerm, cfg.ListInterval = 10*time.Minute, time.Hour // so that less is done in half a day
		}).Run(ctx)
		var trimmed *TrimmedError
		if !errors.As(err, &trimmed) {
			t.Errorf("Run returned %v, want a TrimmedError", err)
		}
		if opened := f.calls("GetShardIterator shard TRIM_HORIZON"); len(opened) != 1 {
			t.Errorf("opened %d times, want once: records may have come and gone", len(opened))
		}
	})
}

func TestTheReaderSaysWhenItHasCaughtUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFakeStream(), &collector{}
		s := f.open("shard", "")
		f.write(s, "item", 30)
		slow := make(chan struct{})
		c.before = holdUntil(slow)
		r := newTestReader(t, f, newLeases(), c)
		if r.Stats().CaughtUp {
			t.Error("caught up before it began")
		}
		ctx, cancel := contextFor(t, time.Hour)
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		time.Sleep(time.Minute)
		if r.Stats().CaughtUp {
			t.Error("caught up with 30 records in hand")
		}
		close(slow)
		time.Sleep(time.Minute)
		if !r.Stats().CaughtUp {
			t.Error("not caught up with everything done")
		}
		cancel()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	})
}

func contextFor(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), d)
}

// holdUntil makes a collector wait with its batches.
func holdUntil(open <-chan struct{}) func(context.Context, []change.Record) (int, error) {
	return func(_ context.Context, records []change.Record) (int, error) {
		<-open
		return len(records), nil
	}
}
