package table

import (
	"context"
	"fmt"
	"time"

	"github.com/dynamill/dynamill/internal/awscall"
)

// retryTotal is how long a call is sent again; then the caller's driver tries the records again.
const retryTotal = time.Minute

// Attempt calls f until it succeeds, fails for good, or a minute has passed.
func Attempt[T any](ctx context.Context, rd *Reader, doing string, f func() (T, error)) (T, error) {
	sent := false
	out, err := awscall.Persist(ctx, retryTotal, func() (T, error) {
		if sent {
			rd.Counters.Retries.Add(1)
		}
		sent = true
		rd.parallelism.begin()
		began := time.Now()
		out, err := f()
		_, throttled := awscall.Load(err)
		rd.parallelism.end(time.Since(began), throttled)
		rd.Counters.refused(err)
		return out, err
	})
	if err != nil {
		return out, fmt.Errorf("%s: %w", doing, err)
	}
	return out, nil
}
