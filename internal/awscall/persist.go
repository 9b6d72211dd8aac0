package awscall

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// The pauses between two tries grow from the first to the last, with jitter.
const (
	PauseFirst = 25 * time.Millisecond
	PauseLast  = 2 * time.Second
)

// Persist calls f until it succeeds, fails for good, the context ends, or the time
// is over. These tries come beside those of the AWS SDK itself.
func Persist[T any](ctx context.Context, atMost time.Duration, f func() (T, error)) (T, error) {
	policy := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(PauseFirst), backoff.WithMaxInterval(PauseLast), backoff.WithMaxElapsedTime(atMost))
	return backoff.RetryWithData(func() (out T, err error) {
		if ctx.Err() != nil {
			return out, backoff.Permanent(ctx.Err()) // not its cause: callers ask for context.Canceled
		}
		if out, err = f(); err != nil && !Passes(err) {
			return out, backoff.Permanent(err)
		}
		return out, err
	}, backoff.WithContext(policy, ctx))
}
