// Package parked lists, shows, retries and discards what could not be applied. It imports session and projections.
package parked

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/environment"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/output"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/session"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/settings"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/projections/inspect"
)

// Entry is a parked (item, rule) as it is printed.
type Entry struct {
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
func (e Entry) Text() string {
	var table output.Columns
	for _, line := range [][2]string{
		{"id", printable.Shell(e.ID)}, {"rule", e.Rule}, {"key", e.Key}, {"code", e.Code},
		{"reason", e.Reason}, {"since", e.Since}, {"position", e.Position}, {"raw", e.Raw}, {"value", e.Value}, {"winner", e.Winner},
	} {
		if line[1] != "" {
			table.Add(line[0], line[1])
		}
	}
	for _, claimant := range e.Claimants {
		table.Add("claimant", claimant)
	}
	return table.Text()
}

// entryOf is a parked entry with at most so many claimants.
func entryOf(p inspect.Parked, claimantsMax int) Entry {
	e := Entry{
		ID: p.ID, Rule: p.Rule, Key: p.Key.String(), Code: p.Code, Reason: p.Reason,
		Since: output.Time(p.At), Position: p.Position.String(), Raw: p.Raw,
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

// open begins to read what is parked, and needs no rules for it.
func open(ctx context.Context, out *output.Output, s *settings.Settings, rulesGiven bool) (w *session.Session, parked inspect.ParkedReader,
	err error) {
	if w, err = session.Inspect(out, s, rulesGiven); err != nil {
		return nil, parked, err
	}
	if _, err := w.Describe(ctx); err != nil {
		return nil, parked, err
	}
	parked, userTable, err := inspect.OpenParked(ctx, w.Env.Tables, w.Env.StateTable)
	if err != nil {
		return nil, parked, w.Env.Classify(fmt.Errorf("looking what is parked: %w", w.Env.ExplainLostState(ctx, err)))
	}
	return w, parked, w.Env.CheckOwner(userTable)
}

// Show prints one entry.
func Show(ctx context.Context, out *output.Output, s *settings.Settings, rulesGiven bool, id string) error {
	w, parked, err := open(ctx, out, s, rulesGiven)
	if err != nil {
		return err
	}
	found, err := parked.FindParked(ctx, id)
	if err != nil {
		return failureOf(w.Env, id, err)
	}
	out.PrintResult(entryOf(found, math.MaxInt))
	return nil
}

// failureOf turns the end of a search for an id into the sentence to be read.
func failureOf(env *environment.Environment, id string, err error) error {
	if errors.Is(err, inspect.ErrNotParked) {
		return ending.Invalid("nothing is parked under %s: `dynamill parked list` shows the IDs", printable.Shell(id))
	}
	return env.Classify(err)
}

var errEnough = errors.New("enough is read")

// IDs returns ids of parked entries: all of them, or at least the number least. If reading fails, it returns those read
// until then.
func IDs(ctx context.Context, out *output.Output, s *settings.Settings, rulesGiven bool, least int) (ids []string) {
	_, parked, err := open(ctx, out, s, rulesGiven)
	if err != nil {
		return nil
	}
	_ = parked.EachParked(ctx, func(page []inspect.Parked) error {
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

// listedAtOnce is how many lines of a list are held, and aligned. Thousands may be parked when a rule is wrong.
const listedAtOnce = 1_000

// ListedClaimantsMax is how many claimants of a contested target a list names.
const ListedClaimantsMax = 3

// List prints what is parked while it is read.
func List(ctx context.Context, out *output.Output, s *settings.Settings, rulesGiven bool) error {
	w, parked, err := open(ctx, out, s, rulesGiven)
	if err != nil {
		return err
	}
	list := list{Output: out}
	err = parked.EachParked(ctx, func(page []inspect.Parked) error {
		for _, p := range page {
			list.add(entryOf(p, ListedClaimantsMax))
		}
		return out.Failed
	})
	if err == nil {
		list.end()
	}
	return w.Env.Classify(err)
}

type list struct {
	*output.Output
	table  output.Columns
	listed int
}

func (l *list) add(e Entry) {
	l.listed++
	switch {
	case l.JSON && l.listed == 1:
		l.PrintJSONPart("{\n  \"parked\": [\n    ", "    ", e, "")
		return
	case l.JSON:
		l.PrintJSONPart(",\n    ", "    ", e, "")
		return
	case l.listed == 1:
		l.table.Add("ID", "RULE", "KEY", "CODE", "SINCE", "REASON")
	}
	l.table.Add(printable.Shell(e.ID), e.Rule, e.Key, e.Code, e.Since, e.Reason)
	if len(l.table.Rows) >= listedAtOnce {
		l.PrintText(l.table.Text())
	}
}

func (l *list) end() {
	switch {
	case l.JSON && l.listed == 0:
		l.PrintText("{\n  \"parked\": []\n}\n")
	case l.JSON:
		l.PrintText("\n  ]\n}\n")
	case l.listed == 0:
		l.PrintText("nothing is parked\n")
	default:
		l.PrintText(l.table.Text())
	}
}

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

type outcomes struct {
	Outcomes []outcome `json:"outcomes"`
}

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

// Change does one thing to the entries of the given IDs, or to all that are parked. It finds them before it changes any.
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
	var chosen []inspect.Parked
	if all {
		err = engine.EachParked(ctx, func(page []inspect.Parked) error {
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

func (c Action) changeAll(ctx context.Context, out *output.Output, engine *projections.Engine, chosen []inspect.Parked) error {
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
	notRetried  = "cannot be retried" // it names no item
)

// changeOne does one thing to one entry. An entry that is gone by now was cleared by a record.
func (c Action) changeOne(ctx context.Context, engine *projections.Engine, entry inspect.Parked) (outcome, error) {
	o := outcome{ID: entry.ID, Result: c.done}
	if c.retries && entry.Key == (change.Key{}) && entry.Contested() == nil {
		o.Result, o.Reason = notRetried, "a record that could not be read: discard it once you have looked at it"
		if entry.Parked.Rule != "" { // an aggregate with too many values
			o.Reason = "no item was there to show its values: it goes by itself once it has few enough"
		}
		return o, nil
	}
	err := c.do(engine, ctx, entry.ID)
	if err == nil && c.retries {
		var left inspect.Parked
		if left, err = engine.FindParked(ctx, entry.ID); err == nil {
			o.Result, o.Reason = stillParked, left.Reason
		}
	}
	if errors.Is(err, inspect.ErrNotParked) {
		err = nil
	}
	return o, err
}
