package parked

import (
	"context"
	"errors"
	"fmt"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/output"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/session"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/settings"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/internal/projections"
)

// Action does one thing to one parked entry.
type Action struct {
	Verb, done string
	do         func(*projections.Engine, context.Context, string) error
	retries    bool // whether the entry may remain, which reading it again then tells
}

// The changes that there are.
var (
	Retry   = Action{"retry", "applied", (*projections.Engine).RetryParked, true}
	Discard = Action{"discard", "discarded", (*projections.Engine).DiscardParked, false}
)

// outcomes is the result of `parked retry` and `parked discard`.
type outcomes struct {
	Outcomes []outcome `json:"outcomes"`
}

// outcome is what became of one parked entry.
type outcome struct {
	ID     string `json:"id"`
	Result string `json:"result"` // applied, still parked, cannot be retried, discarded
	Reason string `json:"reason,omitempty"`
}

// Text says it to people.
func (o outcomes) Text() string {
	if len(o.Outcomes) == 0 {
		return "nothing is parked\n"
	}
	var table output.Columns
	for _, one := range o.Outcomes {
		table.Add(one.Result, printable.Shell(one.ID), one.Reason)
	}
	return table.Text()
}

// Change does one thing to the entries of the given IDs, or to all that are parked. It finds them
// before it does anything to one.
func Change(ctx context.Context, out *output.Output, s *settings.Settings, what Action, ids []string, all bool) error {
	w, err := session.New(out, s)
	if err != nil {
		return err
	}
	if _, err := w.Describe(ctx); err != nil {
		return err
	}
	engine, err := projections.OpenAttached(ctx, w.EngineConfig(0))
	if err != nil {
		return w.Env.Classify(err)
	}
	var chosen []projections.Parked
	if all {
		err = engine.EachParked(ctx, func(page []projections.Parked) error {
			for _, p := range page {
				p.Claimants = nil // there may be many
				chosen = append(chosen, p)
			}
			return nil
		})
		if err != nil {
			return w.Env.Classify(err)
		}
	}
	for _, id := range ids {
		p, err := engine.FindParked(ctx, id)
		if err != nil {
			return failureOf(w.Env, id, err)
		}
		chosen = append(chosen, p)
	}
	return w.Env.Classify(what.changeAll(ctx, out, engine, chosen))
}

func (c Action) changeAll(ctx context.Context, out *output.Output, engine *projections.Engine, chosen []projections.Parked) error {
	outcomes, still := outcomes{Outcomes: []outcome{}}, 0
	for _, entry := range chosen {
		o, err := c.changeOne(ctx, engine, entry)
		if err != nil {
			out.PrintResult(outcomes)
			return fmt.Errorf("%s of %s: %w", c.Verb, printable.Shell(entry.ID), err)
		}
		if o.Result == stillParked {
			still++
		}
		outcomes.Outcomes = append(outcomes.Outcomes, o)
	}
	out.PrintResult(outcomes)
	if still > 0 {
		return fmt.Errorf("%d of %d are still parked: mend the items, then retry", still, len(chosen))
	}
	return nil
}

// What may become of an entry that is retried, beside being applied.
const (
	stillParked = "still parked"
	notRetried  = "cannot be retried" // a record that could not be read
)

// changeOne does one thing to one entry. An entry that is gone by now was cleared by
// a record: the command has nothing left to do for it.
func (c Action) changeOne(ctx context.Context, engine *projections.Engine, entry projections.Parked) (outcome, error) {
	o := outcome{ID: entry.ID, Result: c.done}
	if c.retries && entry.Key == (change.Key{}) {
		o.Result, o.Reason = notRetried, "a record that could not be read: discard it once you have looked at it"
		return o, nil
	}
	err := c.do(engine, ctx, entry.ID)
	if err == nil && c.retries {
		var left projections.Parked
		if left, err = engine.FindParked(ctx, entry.ID); err == nil {
			o.Result, o.Reason = stillParked, left.Reason
		}
	}
	if errors.Is(err, projections.ErrNotParked) {
		err = nil
	}
	return o, err
}
