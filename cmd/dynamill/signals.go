package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

var errStopped = errors.New("stopped by a signal")

// stopOnSignals ends the context at the first SIGINT or SIGTERM and the process
// at the second.
func stopOnSignals(ctx context.Context, say func(string)) (context.Context, func()) {
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
		cancel(errStopped)
		select {
		case <-signals:
			say("aborted: the next run takes up what was in flight")
			os.Exit(exitFailed)
		case <-released:
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(released)
		cancel(nil)
	}
}
