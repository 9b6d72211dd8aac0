package lambdatest

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"time"
)

// fates draws what happens to invocations. What comes amid an invocation comes within
// about the time that one takes, so that it hits short ones and long ones alike.
type fates struct {
	share   float64 // of invocations to which something happens
	mu      sync.Mutex
	random  *rand.Rand
	typical time.Duration // that an invocation takes
	names   int           // answers that named a record
}

const typicalFirst = 50 * time.Millisecond // as long as nothing has been measured

// newFates draws the fates of a history with batches of this size: the larger they
// are, the fewer invocations there are to be hit.
func newFates(random *rand.Rand, batchSize int) *fates {
	share := 0.5
	if batchSize > 3 {
		share = 0.75
	}
	return &fates{share: share, random: rand.New(rand.NewPCG(random.Uint64(), 0)), typical: typicalFirst}
}

// again says whether a delivery is repeated.
func (f *fates) again() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.random.Float64() < 0.05
}

// draw draws what happens to the next invocation.
func (f *fates) draw() Fate {
	f.mu.Lock()
	defer f.mu.Unlock()
	amid := func() time.Duration { return time.Duration(f.random.Float64() * 1.2 * float64(f.typical)) }
	soon := func(most time.Duration) time.Duration { // mostly much less
		share := f.random.Float64()
		return time.Duration(share * share * float64(most))
	}
	if f.random.Float64() >= f.share {
		return Fate{}
	}
	switch n := f.random.IntN(10); {
	case n < 3:
		return Fate{Kind: Kill, After: amid()}
	case n < 4:
		return Fate{Kind: Pause, After: amid(), For: soon(200 * time.Millisecond)}
	case n < 6:
		return Fate{Kind: Lose, After: amid(), For: soon(600 * time.Millisecond)}
	}
	// The handler stops before, and says how far it came.
	return Fate{Timeout: 5*time.Millisecond + amid()}
}

// answered learns from an invocation that came to its end.
func (f *fates) answered(answer []byte, took time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.typical = (3*f.typical + took) / 4
	if bytes.Contains(answer, []byte("itemIdentifier")) {
		f.names++
	}
}

// named returns how many answers named a record.
func (f *fates) named() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.names
}

// fate is the Function's.
func (h *history) fate(payload []byte) Fate {
	if h.calm.Load() {
		return Fate{}
	}
	fate := h.draw()
	if fate != (Fate{}) {
		h.diary.note(time.Now(), payload, "is to be %s", fate)
	}
	return fate
}

// watched is the function; its invocations are on record.
type watched struct{ *history }

// Invoke invokes the function, which must not fail but by what was done to it.
func (w watched) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	began := time.Now()
	answer, err := w.function.Invoke(ctx, payload)
	took := time.Since(began)
	var failed *FunctionError
	switch {
	case err == nil:
		w.answered(answer, took)
		w.diary.note(began, payload, "answered after %s: %.200s", took.Round(time.Millisecond), answer)
	case errors.As(err, &failed):
		w.diary.note(began, payload, "failed after %s: %.300s", took.Round(time.Millisecond), strings.ReplaceAll(failed.Error(), "\n", " | "))
		if !blow(failed) {
			w.Errorf("the function failed by itself: %s", failed)
		}
	}
	return answer, err
}

// blow reports whether a failure comes of what was done to the function.
func blow(failed *FunctionError) bool {
	switch failed.Type {
	case "Sandbox.Timedout", "Sandbox.Lost", "Runtime.TruncatedResponse": // the last was killed while it answered
		return true
	case "Runtime.ExitError":
		return strings.Contains(failed.Message, "signal: killed")
	}
	// A batch that was handed over has no partial answer: it stops with an error
	// before its time is up. A connection, whose deadline is the same, may say so
	// before the context does.
	return strings.Contains(failed.Message, "stopped before the invocation's deadline") ||
		strings.Contains(failed.Message, "context deadline exceeded")
}
