package main

import (
	"context"
	"fmt"
	"strings"

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
	description, items := r.engine.Describe(), r.counts.items
	facts := columns{}
	facts.add("table", r.table+" in "+r.env.where())
	facts.add("state", description.StateTable)
	if r.source == nil {
		facts.add("source", "scan of "+r.table)
	} else {
		pieces, err := r.source.Pieces(ctx)
		if err != nil {
			return fmt.Errorf("listing the pieces of the %s: %w", r.source.Describe(), err)
		}
		items = 0
		for _, p := range pieces {
			items += p.Items
		}
		facts.add("source", r.source.Describe()+", "+printable.Counted(len(pieces), "piece"))
	}
	switch {
	case left > 0:
		facts.add("does", "brings rules into force in "+passes(left)+": "+strings.Join(r.bringing(), ", "))
	case r.options.whole():
		facts.add("does", "brings every item to what the rules ask for, then cleans up after items that have vanished")
	default:
		facts.add("does", "brings items to what the rules ask for")
	}
	if r.source == nil {
		facts.add("items", fmt.Sprintf("about %s, %.1f MB (DynamoDB's own count, up to 6 hours old)", printable.Grouped(items), float64(r.counts.bytes)/1e6))
	} else if items > 0 {
		facts.add("items", "about "+printable.Grouped(items))
	}
	over, sweeps := r.passesOver(left, len(description.FormerRules) > 0)
	e := r.counts.estimate(over, sweeps, items, r.source == nil, r.options.eventuallyConsistent)
	if total := e.scan + e.look + e.sweep; total > 0 {
		facts.add("reads", fmt.Sprintf("about %s read units: %s to scan, %s to look at each item and its ledger entry, %s to sweep; more where copies and mirrors are checked",
			printable.Grouped(total), printable.Grouped(e.scan), printable.Grouped(e.look), printable.Grouped(e.sweep)))
	}
	if left > 0 {
		facts.add("writes", "what the rules ask for and does not stand there yet")
	} else {
		facts.add("writes", "none where all is right")
	}
	fmt.Fprint(r.screen, facts.Text())
	return nil
}
