package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/progress"
	"github.com/dynamill/dynamill/rules"
)

// job is what a command that works for long has at hand from its start.
type job struct {
	set    *rules.Set
	table  string
	status *progress.Screen
	logger *slog.Logger
}

// begin reads the rule file, and lets signals end what is done with the returned
// context until end is called. Nothing is asked of AWS yet.
func (a *app) begin(ctx context.Context) (working context.Context, j *job, end func(), err error) {
	set, table, err := a.options.loadForTable()
	if err != nil {
		return nil, nil, nil, err
	}
	status := progress.NewScreen(a.stderr)
	working, end = stopOnSignals(ctx, func(text string) { fmt.Fprintln(status, text) })
	logger := a.logger(status)
	logWarnings(logger, set)
	return working, &job{set: set, table: table, status: status, logger: logger}, end, nil
}

// checkRules refuses names of rules that there are not.
func (j *job) checkRules(names []string) error {
	for _, name := range names {
		if !slices.ContainsFunc(j.set.Rules, func(r *rules.Rule) bool { return r.Name == name }) {
			known := make([]string, len(j.set.Rules))
			for i, r := range j.set.Rules {
				known[i] = r.Name
			}
			return invalid("there is no rule %q: the rules are %s", name, strings.Join(known, ", "))
		}
	}
	return nil
}

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
