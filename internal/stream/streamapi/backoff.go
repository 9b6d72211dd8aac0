package streamapi

import (
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// A Backoff doubles from 100 ms; chance makes each up to half shorter or longer, and
// none is longer than 20 s. It follows from a name, so that a proof can repeat it.
type Backoff struct {
	*backoff.ExponentialBackOff
	random *rand.Rand
}

// NewBackoff returns waits that the name decides.
func NewBackoff(name string) *Backoff {
	return &Backoff{random: rand.New(rand.NewPCG(NameHash(name), 1)), ExponentialBackOff: backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(100*time.Millisecond),
		backoff.WithRandomizationFactor(0),
		backoff.WithMultiplier(2),
		backoff.WithMaxInterval(20*time.Second*2/3),
		backoff.WithMaxElapsedTime(0))}
}

// NextBackOff is the next wait.
func (w *Backoff) NextBackOff() time.Duration {
	d := w.ExponentialBackOff.NextBackOff()
	return d/2 + time.Duration(w.random.Int64N(int64(d)))
}

// NameHash is the seed of random numbers that follow from a name.
func NameHash(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return h.Sum64()
}
