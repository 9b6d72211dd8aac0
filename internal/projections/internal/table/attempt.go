package table

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dynamill/dynamill/internal/awscall"
)

const (
	// writesAtOnce is how many single writes of one batch are under way together.
	writesAtOnce = 16
	retryTotal   = time.Minute // then the caller's driver tries the records again
)

// Attempt calls f until it succeeds, fails for good, or a minute has passed.
func Attempt[T any](ctx context.Context, rd *Reader, doing string, f func() (T, error)) (T, error) {
	sent := false
	out, err := awscall.Persist(ctx, retryTotal, func() (T, error) {
		if sent {
			rd.Counters.Retries.Add(1)
		}
		sent = true
		out, err := f()
		rd.Counters.refused(err)
		return out, err
	})
	if err != nil {
		return out, fmt.Errorf("%s: %w", doing, err)
	}
	return out, nil
}

// Every calls f for 0 to n-1, several at once, and returns all that they return.
func Every(ctx context.Context, n int, f func(context.Context, int) error) []error {
	errs := make([]error, n)
	var g errgroup.Group
	g.SetLimit(writesAtOnce)
	for i := range n {
		g.Go(func() error {
			errs[i] = f(ctx, i)
			return nil
		})
	}
	_ = g.Wait() // of functions that return nil
	return errs
}

// Each calls f for 0 to n-1, several at once, and begins no more of them once
// one has failed. The error that it returns is that of the lowest number, not
// the one that came first.
func Each(ctx context.Context, n int, f func(context.Context, int) error) error {
	var failed atomic.Bool
	return cmp.Or(Every(ctx, n, func(ctx context.Context, i int) error {
		if failed.Load() {
			return nil
		}
		err := f(ctx, i)
		if err != nil {
			failed.Store(true)
		}
		return err
	})...)
}
