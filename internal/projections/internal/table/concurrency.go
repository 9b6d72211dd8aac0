package table

import (
	"cmp"
	"context"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// requestsAtOnce is how many requests of one batch are under way together, for every kind of rule.
const requestsAtOnce = 16

// Every calls f for 0 to n-1, several at once, and returns all that they return.
func Every(ctx context.Context, n int, f func(context.Context, int) error) []error {
	errs := make([]error, n)
	var g errgroup.Group
	g.SetLimit(requestsAtOnce)
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
