package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/dynamill/dynamill/change"
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

func (a *app) parkedCommand() *cobra.Command {
	parked := &cobra.Command{
		Use:   "parked",
		Short: "Lists, shows, retries or discards what could not be applied",
		Long: "An item that can have no effect under a rule as it is (a key variable that holds a #, a text where a number is\n" +
			"needed) is parked with its reason, and everything else goes on. A good record of the item clears it; so does\n" +
			"`retry` once the item has been mended. A record that could not be read stays until `discard`; where its key\n" +
			"could be read, its item was brought to what it is now at once.\n\n" +
			"A mirror item for which several items ask, and a unique value that several items have, are listed until one\n" +
			"claimant is left. The claimant with the smallest key wins.\n\n" +
			"`list` and `show` need no rule file where --table is given. IDs are printed so that they can be copied into a shell.",
		Example: "  dynamill parked list --table app\n  dynamill parked retry --all --table app",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	parked.AddCommand(
		a.parkedListCommand(),
		a.parkedShowCommand(),
		a.parkedChangeCommand(retryParked, "Applies parked items again, as they are now",
			"Derives each item again from what it holds now. An entry whose item is good goes away;\none that is still bad stays, and the exit code is 1. A record that could not be read cannot be retried.\n"+
				"Its entry is named as such, and stays."),
		a.parkedChangeCommand(discardParked, "Forgets parked items without applying them",
			"Removes entries without applying anything and without asking. While an item is still bad, `verify` calls\n"+
				"its entry missing, and a repair or a replay parks it again."),
	)
	return parked
}

func (a *app) parkedShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "show ID",
		Short:   "Shows one parked item",
		Example: "  dynamill parked show 'r1/USER#u1/GROUP#g1' --table app",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			env, parked, err := a.inspectParked(cmd)
			if err != nil {
				return err
			}
			found, err := parked.Find(cmd.Context(), args[0])
			if err != nil {
				return env.parkedFailure(args[0], err)
			}
			return a.printEntry(entryOf(found, math.MaxInt))
		},
	}
}

func (a *app) printEntry(e parkedEntry) error {
	if a.options.json {
		return a.printJSON(e)
	}
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
	return table.writeTo(a.stdout)
}

// parkedChange does one thing to one parked entry.
type parkedChange struct {
	verb, done string
	do         func(*projections.Engine, context.Context, string) error
	retries    bool // whether the entry may remain, which reading it again then tells
}

var (
	retryParked   = parkedChange{"retry", "applied", (*projections.Engine).RetryParked, true}
	discardParked = parkedChange{"discard", "discarded", (*projections.Engine).DiscardParked, false}
)

// outcome is what became of one parked entry.
type outcome struct {
	ID     string `json:"id"`
	Result string `json:"result"` // applied, still parked, cannot be retried, discarded
	Reason string `json:"reason,omitempty"`
}

func (a *app) parkedChangeCommand(what parkedChange, short, long string) *cobra.Command {
	var all bool
	verb := what.verb
	command := &cobra.Command{
		Use:     verb + " {ID... | --all}",
		Short:   short,
		Long:    long,
		Example: "  dynamill parked " + verb + " 'r1/USER#u1/GROUP#g1' --table app\n  dynamill parked " + verb + " --all --table app",
		Args:    cobra.ArbitraryArgs,
		PreRunE: func(_ *cobra.Command, args []string) error { // by now environment and file have said what --all is
			if all == (len(args) > 0) {
				return invalid("give either IDs from `dynamill parked list` or --all")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			env, engine, err := a.attach(cmd.Context())
			if err != nil {
				return err
			}
			chosen, err := env.chooseParked(cmd.Context(), engine, args, all)
			if err != nil {
				return err
			}
			return env.classify(a.changeParked(cmd.Context(), engine, chosen, what))
		},
	}
	command.Flags().BoolVar(&all, "all", false, verb+" everything that is parked")
	return command
}

// chosenEntry is a parked entry to be retried or discarded.
type chosenEntry struct {
	id         string
	unreadable bool // a record that could not be read
}

func chosenOf(p projections.Parked) chosenEntry {
	return chosenEntry{p.ID, p.Key == (change.Key{})}
}

// chooseParked finds the entries of the given IDs, before anything is done to any of them.
func (env *environment) chooseParked(ctx context.Context, engine *projections.Engine, ids []string, all bool) (chosen []chosenEntry, err error) {
	if all {
		err := engine.EachParked(ctx, func(page []projections.Parked) error {
			for _, p := range page {
				chosen = append(chosen, chosenOf(p))
			}
			return nil
		})
		return chosen, env.classify(err)
	}
	for _, id := range ids {
		p, err := engine.FindParked(ctx, id)
		if err != nil {
			return nil, env.parkedFailure(id, err)
		}
		chosen = append(chosen, chosenOf(p))
	}
	return chosen, nil
}

// parkedFailure turns the end of a search for an id into the sentence to be read.
func (env *environment) parkedFailure(id string, err error) error {
	if errors.Is(err, projections.ErrNotParked) {
		return invalid("nothing is parked under %s: `dynamill parked list` shows the IDs", printable.Shell(id))
	}
	return env.classify(err)
}

func (a *app) changeParked(ctx context.Context, engine *projections.Engine, chosen []chosenEntry, what parkedChange) error {
	outcomes, still := make([]outcome, 0, len(chosen)), 0
	for _, c := range chosen {
		o, err := what.change(ctx, engine, c)
		if err != nil {
			return errors.Join(fmt.Errorf("%s of %s: %w", what.verb, printable.Shell(c.id), err), a.printOutcomes(outcomes))
		}
		if o.Result == stillParked {
			still++
		}
		outcomes = append(outcomes, o)
	}
	if err := a.printOutcomes(outcomes); err != nil {
		return err
	}
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

// change does one thing to one entry. An entry that is gone by now was cleared by
// a record: the command has nothing left to do for it.
func (c parkedChange) change(ctx context.Context, engine *projections.Engine, entry chosenEntry) (outcome, error) {
	o := outcome{ID: entry.id, Result: c.done}
	if c.retries && entry.unreadable {
		o.Result, o.Reason = notRetried, "a record that could not be read: discard it once somebody has looked at it"
		return o, nil
	}
	err := c.do(engine, ctx, entry.id)
	if err == nil && c.retries {
		var left projections.Parked
		if left, err = engine.FindParked(ctx, entry.id); err == nil {
			o.Result, o.Reason = stillParked, left.Reason
		}
	}
	if errors.Is(err, projections.ErrNotParked) {
		err = nil
	}
	return o, err
}

func (a *app) printOutcomes(outcomes []outcome) error {
	if a.options.json {
		return a.printJSON(struct {
			Outcomes []outcome `json:"outcomes"`
		}{outcomes})
	}
	if len(outcomes) == 0 {
		return a.print("nothing is parked\n")
	}
	var table columns
	for _, o := range outcomes {
		table.add(o.Result, printable.Shell(o.ID), o.Reason)
	}
	return table.writeTo(a.stdout)
}

// inspectParked begins to read what is parked, and needs no rules for it.
func (a *app) inspectParked(cmd *cobra.Command) (*environment, *projections.ParkedInspection, error) {
	ctx := cmd.Context()
	table, _, err := a.options.inspectedTable(cmd.Flags().Changed("rules"))
	if err != nil {
		return nil, nil, err
	}
	env, err := a.options.connect(ctx, table, a.logger(a.stderr))
	if err != nil {
		return nil, nil, err
	}
	if _, err := env.describe(ctx); err != nil {
		return nil, nil, err
	}
	parked, err := projections.InspectParked(ctx, env.tables, env.stateTable)
	if err != nil {
		return nil, nil, env.classify(fmt.Errorf("looking what is parked: %w", env.tellLostState(ctx, err)))
	}
	return env, parked, env.checkOwner(parked.Table)
}

// attach opens an engine on the table's state, without creating any.
func (a *app) attach(ctx context.Context) (*environment, *projections.Engine, error) {
	set, table, err := a.options.loadForTable()
	if err != nil {
		return nil, nil, err
	}
	logger := a.logger(a.stderr)
	env, err := a.options.connect(ctx, table, logger)
	if err != nil {
		return nil, nil, err
	}
	if _, err := env.describe(ctx); err != nil {
		return nil, nil, err
	}
	engine, err := projections.Open(ctx, projections.Config{
		Client: env.tables, Table: table, StateTable: env.stateTable,
		Rules: set, Logger: logger, Attach: true,
	})
	return env, engine, env.classify(err)
}
