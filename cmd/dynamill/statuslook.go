package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dynamill/dynamill/internal/health"
	"github.com/dynamill/dynamill/projections"
	"github.com/dynamill/dynamill/rules"
)

// statusOptions are the flags of `status`.
type statusOptions struct {
	watch  time.Duration // 0: looks once
	check  bool
	lagMax time.Duration
}

// readyLagDefault is the bound of `run` and `status`: beyond it a lag needs a look.
const readyLagDefault = 5 * time.Minute

// refuse refuses what makes no sense together.
func (o *statusOptions) refuse(watchGiven bool) error {
	switch {
	case o.check && watchGiven:
		return invalid("--check looks once: leave out --watch")
	case o.lagMax < 0:
		return invalid("--ready-lag %s is negative: give a duration such as 5m", o.lagMax)
	case watchGiven && o.watch < watchIntervalMin:
		return invalid("--watch=%s is too short: give at least %s", o.watch, watchIntervalMin)
	}
	return nil
}

// showStatus shows how a table is followed and what is in its state table.
func showStatus(ctx context.Context, out *output, s *settings, rulesGiven bool, options statusOptions) error {
	w, err := newInspection(out, s, rulesGiven)
	if err != nil {
		return err
	}
	if err := w.connect(ctx); err != nil {
		return err
	}
	look := followedLook{env: w.env, lagMax: options.lagMax}
	take := func(ctx context.Context) (*tableStatus, error) {
		s, err := takeStatus(ctx, w.env, w.set, &look)
		return s, w.env.classify(err)
	}
	if options.watch > 0 {
		return watchStatus(ctx, out, options.watch, take)
	}
	found, err := take(ctx)
	switch {
	case err != nil:
		return err
	case options.check:
		return checkStatus(out, found)
	case !found.registered:
		return unsuited("%s", found.line())
	}
	out.printResult(found)
	return nil
}

// checkStatus prints the first line, and says by an error that the table is not healthy.
func checkStatus(out *output, s *tableStatus) error {
	if out.json {
		out.printJSON(s)
	} else {
		out.print("%s\n", s.line())
	}
	switch {
	case !s.followed.Decided():
		return unsuited("whether table %q is followed could not be found out", s.Table)
	case !s.followed.Healthy():
		return fmt.Errorf("table %q is not healthy: %s", s.Table, s.followed.State)
	}
	return nil
}

// takeStatus reads everything once.
func takeStatus(ctx context.Context, env *environment, set *rules.Set, look *followedLook) (*tableStatus, error) {
	// The leases first: reading them fails at once if the endpoint cannot be reached.
	leases, err := env.readLeases(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the leases: %w", err)
	}
	found, err := projections.Inspect(ctx, env.tables, env.stateTable)
	var setup *projections.SetupError
	unregistered := errors.As(err, &setup)
	if err != nil && !unregistered {
		return nil, fmt.Errorf("looking at the state of table %q in %s: %w", env.table, env.where(), err)
	}
	if !unregistered {
		if err := env.checkOwner(found.Table); err != nil {
			return nil, err
		}
	}
	facts, err := look.facts(ctx, leases)
	if err != nil {
		return nil, err
	}
	facts.StateTable = health.Existence{Name: env.stateTable, There: !unregistered}
	s := unregisteredStatus(env)
	if !unregistered {
		facts.StateTable.Created = found.Created
		s = newStatus(found, newLeasesStatus(env.leaseTable, leases, facts.Now), set)
	}
	s.followed = health.Judge(facts)
	s.Health = newHealthStatus(s.followed, facts)
	s.Leases.correct(s.Health.Shards, facts.Owners)
	return s, nil
}
