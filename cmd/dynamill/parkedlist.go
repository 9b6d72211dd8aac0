package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/projections"
)

// timeForm shows a time to the second; parked entries are looked at by people.
const timeForm = time.RFC3339

// parkedEntry is a parked (item, rule) as it is printed.
type parkedEntry struct {
	ID       string `json:"id"`
	Rule     string `json:"rule"`
	Key      string `json:"key"`
	Code     string `json:"code"`
	Reason   string `json:"reason"`
	Since    string `json:"since"`
	Position string `json:"position,omitempty"`
	Raw      string `json:"raw,omitempty"`

	Value          string   `json:"value,omitempty"`          // the unique value that several items have
	Winner         string   `json:"winner,omitempty"`         // of a contested target
	Claimants      []string `json:"claimants,omitempty"`      // of a contested target: all, or the first ones
	ClaimantsTotal int      `json:"claimantsTotal,omitempty"` // how many there are
}

// Text says it to people.
func (e parkedEntry) Text() string {
	var table columns
	for _, line := range [][2]string{
		{"id", printable.Shell(e.ID)}, {"rule", e.Rule}, {"key", e.Key}, {"code", e.Code},
		{"reason", e.Reason}, {"since", e.Since}, {"position", e.Position}, {"raw", e.Raw}, {"value", e.Value}, {"winner", e.Winner},
	} {
		if line[1] != "" {
			table.add(line[0], line[1])
		}
	}
	for _, claimant := range e.Claimants {
		table.add("claimant", claimant)
	}
	return table.Text()
}

// entryOf is a parked entry with at most so many claimants.
func entryOf(p projections.Parked, claimantsMax int) parkedEntry {
	e := parkedEntry{
		ID: p.ID, Rule: p.Rule, Key: p.Key.String(), Code: p.Code, Reason: p.Reason,
		Since: p.At.UTC().Format(timeForm), Position: p.Position.String(), Raw: p.Raw,
		Value: p.Value, ClaimantsTotal: len(p.Claimants),
	}
	for _, key := range p.Claimants[:min(len(p.Claimants), claimantsMax)] {
		e.Claimants = append(e.Claimants, key.String())
	}
	if len(e.Claimants) > 0 {
		e.Winner = e.Claimants[0]
	}
	return e
}

// inspectParked begins to read what is parked, and needs no rules for it.
func inspectParked(ctx context.Context, out *output, s *settings, rulesGiven bool) (*session, *projections.ParkedInspection, error) {
	w, err := newInspection(out, s, rulesGiven)
	if err != nil {
		return nil, nil, err
	}
	if _, err := w.describe(ctx); err != nil {
		return nil, nil, err
	}
	parked, err := projections.InspectParked(ctx, w.env.tables, w.env.stateTable)
	if err != nil {
		return nil, nil, w.env.classify(fmt.Errorf("looking what is parked: %w", w.env.tellLostState(ctx, err)))
	}
	return w, parked, w.env.checkOwner(parked.Table)
}

// showParked prints one entry.
func showParked(ctx context.Context, out *output, s *settings, rulesGiven bool, id string) error {
	w, parked, err := inspectParked(ctx, out, s, rulesGiven)
	if err != nil {
		return err
	}
	found, err := parked.Find(ctx, id)
	if err != nil {
		return parkedFailure(w.env, id, err)
	}
	out.printResult(entryOf(found, math.MaxInt))
	return nil
}

// parkedFailure turns the end of a search for an id into the sentence to be read.
func parkedFailure(env *environment, id string, err error) error {
	if errors.Is(err, projections.ErrNotParked) {
		return invalid("nothing is parked under %s: `dynamill parked list` shows the IDs", printable.Shell(id))
	}
	return env.classify(err)
}

var errEnough = errors.New("enough is read")

// parkedIDs lists at least so many ids if there are as many. Without an answer it has none.
func parkedIDs(ctx context.Context, out *output, s *settings, rulesGiven bool, least int) (ids []string) {
	_, parked, err := inspectParked(ctx, out, s, rulesGiven)
	if err != nil {
		return nil
	}
	_ = parked.Each(ctx, func(page []projections.Parked) error {
		for _, p := range page {
			ids = append(ids, p.ID)
		}
		if len(ids) >= least {
			return errEnough
		}
		return nil
	})
	return ids
}

// listedAtOnce is how many lines of a list are held, and aligned with each
// other. Thousands may be parked when a rule is wrong.
const listedAtOnce = 1_000

// listedClaimantsMax is how many claimants of a contested target a list names.
const listedClaimantsMax = 3

// listParked prints what is parked while it is read.
func listParked(ctx context.Context, out *output, s *settings, rulesGiven bool) error {
	w, parked, err := inspectParked(ctx, out, s, rulesGiven)
	if err != nil {
		return err
	}
	list := parkedList{output: out}
	err = parked.Each(ctx, func(page []projections.Parked) error {
		for _, p := range page {
			list.add(entryOf(p, listedClaimantsMax))
		}
		return out.failed
	})
	if err == nil {
		list.end()
	}
	return w.env.classify(err)
}

// parkedList is a list of parked entries that is being printed.
type parkedList struct {
	*output
	table  columns
	listed int
}

func (l *parkedList) add(e parkedEntry) {
	l.listed++
	switch {
	case l.json && l.listed == 1:
		l.printJSONPart("{\n  \"parked\": [\n    ", "    ", e, "")
		return
	case l.json:
		l.printJSONPart(",\n    ", "    ", e, "")
		return
	case l.listed == 1:
		l.table.add("ID", "RULE", "KEY", "CODE", "SINCE", "REASON")
	}
	l.table.add(printable.Shell(e.ID), e.Rule, e.Key, e.Code, e.Since, e.Reason)
	if len(l.table.rows) >= listedAtOnce {
		l.printText(l.table.Text())
	}
}

func (l *parkedList) end() {
	switch {
	case l.json && l.listed == 0:
		l.printText("{\n  \"parked\": []\n}\n")
	case l.json:
		l.printText("\n  ]\n}\n")
	case l.listed == 0:
		l.printText("nothing is parked\n")
	default:
		l.printText(l.table.Text())
	}
}
