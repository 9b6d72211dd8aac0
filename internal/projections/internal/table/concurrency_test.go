package table

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/smithy-go"
)

// server answers so many requests at a time in 5 ms each; the others wait for their turn.
func server(t *testing.T, atOnce int) (rd *Reader, work func(n int) time.Duration) {
	rd = &Reader{}
	return rd, serves(t, rd, atOnce, 5*time.Millisecond)
}

func serves(t *testing.T, rd *Reader, atOnce int, each time.Duration) (work func(n int) time.Duration) {
	turns := make(chan struct{}, atOnce)
	return func(n int) time.Duration {
		began := time.Now()
		for _, err := range rd.Every(t.Context(), n, func(ctx context.Context, _ int) error {
			_, err := Attempt(ctx, rd, "asking", func() (int, error) {
				turns <- struct{}{}
				time.Sleep(each)
				<-turns
				return 0, nil
			})
			return err
		}) {
			if err != nil {
				t.Error(err)
			}
		}
		return time.Since(began)
	}
}

func TestMoreRequestsGoSideBySideWhileAnswersTakeNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rd, work := server(t, 1000)
		if rd.AtOnce() != requestsFirst {
			t.Errorf("%d at once to begin with", rd.AtOnce())
		}
		for range 20 {
			work(400)
		}
		if took := work(1280); rd.AtOnce() != requestsMax || took != 50*time.Millisecond {
			t.Errorf("%d at once, 1280 requests took %v; want %d, in ten turns", rd.AtOnce(), took, requestsMax)
		}
	})
}

func TestWritesThatTakeLongerThanReadsGoSideBySideAsWell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rd, read := server(t, 1000)
		for range 20 {
			read(400)
		}
		write := serves(t, rd, 1000, 15*time.Millisecond)
		for range 40 {
			write(400)
		}
		if rd.AtOnce() < requestsMax/2 {
			t.Errorf("%d at once", rd.AtOnce())
		}
	})
}

func TestASlowServerIsNotAskedMoreAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rd, work := server(t, 20)
		for range 50 {
			work(400)
			if rd.AtOnce() > 64 {
				t.Fatalf("%d at once at a server that answers 20", rd.AtOnce())
			}
		}
	})
}

func TestThrottlingHalvesTheRequestsSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rd, refused := &Reader{}, 3
		if _, err := Attempt(t.Context(), rd, "asking", func() (int, error) {
			if refused--; refused >= 0 {
				return 0, &smithy.GenericAPIError{Code: "ThrottlingException"}
			}
			return 0, nil
		}); err != nil || rd.AtOnce() != requestsFirst/8 {
			t.Errorf("%d at once after three refusals, %v", rd.AtOnce(), err)
		}
	})
}

// TestThrottlingBoundsWorkThatHasBegun has a table throttle the first request of one piece of work.
func TestThrottlingBoundsWorkThatHasBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rd := &Reader{}
		var begun, now, most atomic.Int64
		rd.Every(t.Context(), 30, func(ctx context.Context, _ int) error {
			number, beside := begun.Add(1), now.Add(1)
			defer now.Add(-1)
			if number > requestsFirst {
				most.Store(max(most.Load(), beside))
			}
			throttle := number == 1
			_, err := Attempt(ctx, rd, "asking", func() (int, error) {
				if throttle {
					throttle = false
					return 0, &smithy.GenericAPIError{Code: "ThrottlingException"}
				}
				time.Sleep(5 * time.Millisecond)
				return 0, nil
			})
			return err
		})
		if most.Load() > requestsFirst*3/4 {
			t.Errorf("%d at once after a request was throttled", most.Load())
		}
	})
}
