// Package status says how a table is followed and what its state table holds: rules, seeding, fan-outs,
// parked records, leases. It imports session, report, followed and internal/health, and writes nothing.
package status

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/environment"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/followed"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/output"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/progress"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/session"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/settings"
	"github.com/dynamill/dynamill/internal/health"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/internal/projections/inspect"
	"github.com/dynamill/dynamill/internal/rules"
)

// Options are the flags of `status`.
type Options struct {
	Watch  time.Duration // 0: looks once
	Check  bool
	LagMax time.Duration
}

// ReadyLagDefault is the bound of `run` and `status`: beyond it a lag needs a look.
const ReadyLagDefault = 5 * time.Minute

// Refuse refuses what makes no sense together. A check does not watch, even if a file or the environment gives --watch.
func (o *Options) Refuse(watchTyped bool) error {
	switch {
	case o.Check && watchTyped:
		return ending.Invalid("--check looks once: leave out --watch")
	case o.LagMax < 0:
		return ending.Invalid("--ready-lag %s is negative: give a duration such as 5m", o.LagMax)
	case (watchTyped || o.Watch != 0) && o.Watch < watchIntervalMin:
		return ending.Invalid("--watch=%s is too short: give at least %s", o.Watch, watchIntervalMin)
	case o.Check:
		o.Watch = 0
	}
	return nil
}

// Show shows how a table is followed and what is in its state table.
func Show(ctx context.Context, out *output.Output, s *settings.Settings, rulesGiven bool, options Options) error {
	w, err := session.Inspect(out, s, rulesGiven)
	if err != nil {
		return err
	}
	if err := w.Connect(ctx); err != nil {
		return err
	}
	look := followed.Look{Env: w.Env, LagMax: options.LagMax}
	take := func(ctx context.Context) (*Report, error) {
		s, err := take(ctx, w.Env, w.Set, &look)
		return s, w.Env.Classify(err)
	}
	if options.Watch > 0 {
		return watchAgain(ctx, out, options.Watch, take)
	}
	found, err := take(ctx)
	switch {
	case err != nil:
		return err
	case options.Check:
		return check(out, found)
	case !found.registered:
		return ending.Unsuited("%s", found.line())
	}
	out.PrintResult(found)
	return nil
}

// check prints the first line, and says by an error that the table is not healthy.
func check(out *output.Output, s *Report) error {
	if out.JSON {
		out.PrintJSON(s)
	} else {
		out.Print("%s\n", s.line())
	}
	switch {
	case !s.followed.Decided():
		return ending.Unsuited("whether table %q is followed could not be found out", s.Table)
	case !s.followed.Healthy():
		return fmt.Errorf("table %q is not healthy: %s", s.Table, s.followed.State)
	}
	return nil
}

// take reads everything once.
func take(ctx context.Context, env *environment.Environment, set *rules.Set, look *followed.Look) (*Report, error) {
	// The leases first: reading them fails at once if the endpoint cannot be reached.
	rows, leaseTable, err := env.Leases().Read(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the leases: %w", err)
	}
	shown := Leases{Table: env.LeaseTable, Shards: []Shard{}}
	found, err := inspect.Read(ctx, env.Tables, env.StateTable)
	unregistered := errors.Is(err, inspect.ErrUnregistered)
	switch {
	case unregistered: // what the lease table holds means nothing without rules
		found, set = &inspect.Inspection{Table: env.Table, StateTable: env.StateTable, Parked: map[string]int{}}, &rules.Set{}
	case err != nil:
		return nil, fmt.Errorf("looking at the state of table %q in %s: %w", env.Table, env.Where(), err)
	}
	if err := env.CheckOwner(found.Table); err != nil {
		return nil, err
	}
	facts, err := look.Facts(ctx, rows, leaseTable, leaseTable && found.LeavesToFunction())
	if err != nil {
		return nil, err
	}
	facts.StateTable = health.Existence{Name: env.StateTable, There: !unregistered, Created: found.Created}
	if !unregistered {
		shown.Exists, shown.Shards = leaseTable, shardsOf(rows, facts.Now)
	}
	s := newReport(found, shown, set)
	s.registered = !unregistered
	s.followed = health.Judge(facts)
	s.Health = newHealthStatus(s.followed, facts)
	s.Leases.correct(s.Health.Shards, facts.Owners)
	return s, nil
}

// The intervals of --watch: without a value, and the shortest.
const (
	WatchDefault     = 2 * time.Second
	watchIntervalMin = 100 * time.Millisecond // each look reads the tables, which costs
)

// watchAgain looks again and again until a signal ends it, which is how it is meant to end.
func watchAgain(ctx context.Context, out *output.Output, interval time.Duration, take func(context.Context) (*Report, error)) error {
	ctx, release := session.StopOnSignals(ctx, func(string) {})
	defer release()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for first := true; ; first = false {
		s, err := take(ctx)
		if err == nil {
			showAgain(out, s, first)
			err = out.Failed
		}
		switch {
		case errors.Is(context.Cause(ctx), session.ErrStopped):
			return nil
		case err != nil:
			return err
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// showAgain redraws a terminal; elsewhere it appends: JSON as a line of its own.
func showAgain(out *output.Output, s *Report, first bool) {
	if out.JSON {
		out.PrintJSONLine(s)
		return
	}
	text := output.Time(time.Now()) + "  " + s.Text()
	switch {
	case progress.IsTerminal(out.Stdout):
		width, height := progress.Size(out.Stdout)
		out.PrintData(eraseScreen + printable.Lines(fitted(text, width, height)))
	case first:
		out.PrintText(text)
	default:
		out.PrintText("\n" + text)
	}
}

// eraseScreen goes to the first line and empties the screen (ECMA-48 CUP and ED).
const eraseScreen = "\x1b[H\x1b[2J"

// fitted cuts text to a screen, whose last line is left for the cursor, and says how much is cut off below.
func fitted(text string, width, height int) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if room := max(height-2, 1); len(lines) > room+1 {
		lines = append(lines[:room:room], fmt.Sprintf("... %s more", printable.Counted(len(lines)-room, "line")))
	}
	for i, line := range lines {
		if runes := []rune(line); len(runes) > width {
			lines[i] = string(runes[:width])
		}
	}
	return strings.Join(lines, "\n") + "\n"
}
