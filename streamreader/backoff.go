package streamreader

import (
	"context"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// waits double from 100 ms; chance makes each up to half shorter or longer, and
// none is longer than 20 s. It follows from a name, so that a proof can repeat it.
type waits struct {
	*backoff.ExponentialBackOff
	random *rand.Rand
}

func newWaits(name string) *waits {
	return &waits{random: rand.New(rand.NewPCG(nameHash(name), 1)), ExponentialBackOff: backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(100*time.Millisecond),
		backoff.WithRandomizationFactor(0),
		backoff.WithMultiplier(2),
		backoff.WithMaxInterval(20*time.Second*2/3),
		backoff.WithMaxElapsedTime(0))}
}

// NextBackOff is the next wait.
func (w *waits) NextBackOff() time.Duration {
	d := w.ExponentialBackOff.NextBackOff()
	return d/2 + time.Duration(w.random.Int64N(int64(d)))
}

// sleep waits, or returns the context's cause if that ends first.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

func nameHash(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return h.Sum64()
}
