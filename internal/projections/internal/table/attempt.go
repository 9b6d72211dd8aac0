package table

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/dynamill/dynamill/internal/awscall"
	"github.com/dynamill/dynamill/internal/pace"
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
		_, throttled := awscall.ConflictOrThrottle(err)
		rd.parallelism.end(time.Since(began), throttled)
		rd.Counters.refused(err)
		return out, err
	})
	if err != nil {
		return out, fmt.Errorf("%s: %w", doing, err)
	}
	return out, nil
}

// roundsMax bounds the rounds in vain, before the batch is given back to its driver.
const roundsMax = 40

// ErrTooContended is returned for work that kept losing to others; the driver tries it again.
var ErrTooContended = errors.New("other writers kept changing the same items")

// Round is how one round of work under contention ended.
type Round uint8

// How a round can end.
const (
	Lost     Round = iota // another writer was faster: what was read is read again
	Advanced              // a step was taken, and more are left: no round in vain
	Finished              // nothing is left to do
)

// FinishedIf is finished if a write took effect, and lost if its condition failed.
func FinishedIf(written bool) Round {
	if written {
		return Finished
	}
	return Lost
}

// Contend does work that other writers may undo between its reads and writes, round by round until it is finished or fails, or returns
// ErrTooContended after roundsMax rounds in vain.
func Contend(ctx context.Context, doing string, work func() (Round, error)) error {
	for vain := 0; vain < roundsMax; vain++ {
		if vain > 2 {
			pause(ctx, vain)
		}
		ended, err := work()
		switch {
		case err != nil || ended == Finished:
			return err
		case ended == Advanced:
			vain = -1
		}
	}
	return fmt.Errorf("%s: %w", doing, ErrTooContended)
}

// pause waits a little longer with every round, with jitter, unless the context ends.
func pause(ctx context.Context, try int) {
	limit := min(awscall.PauseLast, awscall.PauseFirst<<min(try, 8))
	_ = pace.Sleep(ctx, rand.N(limit)) // the work itself notices that the context has ended
}
