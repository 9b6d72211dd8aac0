package session

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
)

var ErrStopped = errors.New("stopped by a signal")

// StopOnSignals ends the context at the first SIGINT or SIGTERM and the process
// at the second.
func StopOnSignals(ctx context.Context, say func(string)) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	released := make(chan struct{})
	go func() {
		select {
		case <-signals:
		case <-released:
			return
		}
		say("stopping: finishing what is in flight; a second signal aborts")
		cancel(ErrStopped)
		select {
		case <-signals:
			say("aborted: the next run takes up what was in flight")
			os.Exit(ending.ExitFailed)
		case <-released:
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(released)
		cancel(nil)
	}
}
