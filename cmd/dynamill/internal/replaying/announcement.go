package replaying

import (
	"context"
	"fmt"
	"strings"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/output"
	"github.com/dynamill/dynamill/internal/printable"
)

// passesOver says how many passes go over the items, and how many over the state
// table: the last one, where former rules are taken back or everything is in force.
func (r *replayer) passesOver(left int, formers bool) (items, state int64) {
	switch {
	case left > 0 && formers:
		return int64(left) - 1, 1
	case left > 0:
		return int64(left), 0
	case r.options.whole():
		return 1, 1
	}
	return 1, 0
}

// announce says, before anything is read or written at length, what will be
// done and what it takes as far as that can be told.
func (r *replayer) announce(ctx context.Context, left int) error {
	description, items := r.engine.Describe(), r.counts.Items
	facts := output.Columns{}
	facts.Add("table", r.Table+" in "+r.Env.Where())
	facts.Add("state", description.StateTable)
	if r.source == nil {
		facts.Add("source", "scan of "+r.Table)
	} else {
		pieces, err := r.source.Pieces(ctx)
		if err != nil {
			return fmt.Errorf("listing the pieces of the %s: %w", r.source.Describe(), err)
		}
		items = 0
		for _, p := range pieces {
			items += p.Items
		}
		facts.Add("source", r.source.Describe()+", "+printable.Counted(len(pieces), "piece"))
	}
	switch {
	case left > 0:
		facts.Add("does", "brings rules into force in "+passes(left)+": "+strings.Join(r.bringing(), ", "))
	case r.options.whole():
		facts.Add("does", "brings every item to what the rules ask for, then cleans up after items that have vanished")
	default:
		facts.Add("does", "brings items to what the rules ask for")
	}
	if r.source == nil {
		facts.Add("items", fmt.Sprintf("about %s, %.1f MB (DynamoDB's own count, up to 6 hours old)", printable.Grouped(items), float64(r.counts.Bytes)/1e6))
	} else if items > 0 {
		facts.Add("items", "about "+printable.Grouped(items))
	}
	over, sweeps := r.passesOver(left, len(description.FormerRules) > 0)
	e := r.counts.Estimate(over, sweeps, items, r.source == nil, r.options.EventuallyConsistent)
	if total := e.Scan + e.Look + e.Sweep; total > 0 {
		facts.Add("reads", fmt.Sprintf("about %s read units: %s to scan, %s to look at each item and its ledger entry, %s to sweep; more where copies and mirrors are checked",
			printable.Grouped(total), printable.Grouped(e.Scan), printable.Grouped(e.Look), printable.Grouped(e.Sweep)))
	}
	if left > 0 {
		facts.Add("writes", "what the rules ask for and does not stand there yet")
	} else {
		facts.Add("writes", "none where all is right")
	}
	fmt.Fprint(r.Screen, facts.Text())
	return nil
}
