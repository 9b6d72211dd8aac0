package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/dynamill/dynamill/change"
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
}

func entryOf(p projections.Parked) parkedEntry {
	return parkedEntry{
		ID: p.ID, Rule: p.Rule, Key: p.Key.String(), Code: p.Code, Reason: p.Reason,
		Since: p.At.UTC().Format(timeForm), Position: p.Position.String(), Raw: p.Raw,
	}
}

func (a *app) parkedCommand() *cobra.Command {
	parked := &cobra.Command{
		Use:   "parked",
		Short: "Lists, shows, retries or discards what could not be applied",
		Long: "An item that can have no effect under a rule as it is (a key variable that holds a #, a text where a number is\n" +
			"needed) is parked with its reason, and everything else goes on. A good record of the item clears it; so does\n" +
			"`retry` once the item has been mended. A record that could not be read stays until `discard`; where its key\n" +
			"could be read, its item was brought to what it is now at once.\n\n" +
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
			"Removes entries without applying anything and without asking."),
	)
	return parked
}

func (a *app) parkedListCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "Lists what is parked",
		Example: "  dynamill parked list --table app\n  dynamill parked list --table app --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			parked, err := a.inspectParked(cmd)
			if err != nil {
				return err
			}
			return a.printParked(parked)
		},
	}
}

func (a *app) printParked(parked []projections.Parked) error {
	entries := make([]parkedEntry, len(parked))
	for i, p := range parked {
		entries[i] = entryOf(p)
	}
	if a.options.json {
		return a.printJSON(struct {
			Parked []parkedEntry `json:"parked"`
		}{entries})
	}
	if len(entries) == 0 {
		return a.print("nothing is parked\n")
	}
	var table columns
	table.add("ID", "RULE", "KEY", "CODE", "SINCE", "REASON")
	for _, e := range entries {
		table.add(shellQuote(e.ID), e.Rule, e.Key, e.Code, e.Since, e.Reason)
	}
	return table.writeTo(a.stdout)
}

func (a *app) parkedShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "show ID",
		Short:   "Shows one parked item",
		Example: "  dynamill parked show 'r1/USER#u1/GROUP#g1' --table app",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			parked, err := a.inspectParked(cmd)
			if err != nil {
				return err
			}
			chosen, err := choose(parked, args, false)
			if err != nil {
				return err
			}
			return a.printEntry(entryOf(chosen[0]))
		},
	}
}

func (a *app) printEntry(e parkedEntry) error {
	if a.options.json {
		return a.printJSON(e)
	}
	var table columns
	for _, line := range [][2]string{
		{"id", shellQuote(e.ID)}, {"rule", e.Rule}, {"key", e.Key}, {"code", e.Code},
		{"reason", e.Reason}, {"since", e.Since}, {"position", e.Position}, {"raw", e.Raw},
	} {
		if line[1] != "" {
			table.add(line[0], line[1])
		}
	}
	return table.writeTo(a.stdout)
}

// parkedChange does one thing to one parked entry.
type parkedChange struct {
	verb, done string
	do         func(*projections.Engine, context.Context, string) error
	retries    bool // whether the entry may remain, which a look at the list then tells
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
			return a.withParked(cmd.Context(), func(engine *projections.Engine, parked []projections.Parked) error {
				chosen, err := choose(parked, args, all)
				if err != nil {
					return err
				}
				return a.changeParked(cmd.Context(), engine, chosen, what)
			})
		},
	}
	command.Flags().BoolVar(&all, "all", false, verb+" everything that is parked")
	return command
}

// choose finds the entries of the given IDs, before anything is done to any of them.
func choose(parked []projections.Parked, ids []string, all bool) ([]projections.Parked, error) {
	if all {
		return parked, nil
	}
	byID := make(map[string]projections.Parked, len(parked))
	for _, p := range parked {
		byID[p.ID] = p
	}
	chosen := make([]projections.Parked, 0, len(ids))
	for _, id := range ids {
		p, ok := byID[id]
		if !ok {
			return nil, notParked(id)
		}
		chosen = append(chosen, p)
	}
	return chosen, nil
}

func notParked(id string) error {
	return invalid("nothing is parked under %s: `dynamill parked list` shows the IDs", shellQuote(id))
}

func (a *app) changeParked(ctx context.Context, engine *projections.Engine, chosen []projections.Parked, what parkedChange) error {
	outcomes := make([]outcome, 0, len(chosen))
	for _, p := range chosen {
		if what.retries && p.Key == (change.Key{}) {
			outcomes = append(outcomes, outcome{ID: p.ID, Result: notRetried, Reason: "a record that could not be read: discard it once somebody has looked at it"})
			continue
		}
		// An entry that is gone by now was cleared by a record: what was asked for is so.
		if err := what.do(engine, ctx, p.ID); err != nil && !errors.Is(err, projections.ErrNotParked) {
			return errors.Join(fmt.Errorf("%s of %s: %w", what.verb, shellQuote(p.ID), err), a.printOutcomes(outcomes))
		}
		outcomes = append(outcomes, outcome{ID: p.ID, Result: what.done})
	}
	still := 0
	if what.retries {
		left, err := engine.Parked(ctx)
		if err != nil {
			return fmt.Errorf("looking what is still parked: %w", err)
		}
		still = markStillParked(outcomes, left)
	}
	if err := a.printOutcomes(outcomes); err != nil {
		return err
	}
	if still > 0 {
		return fmt.Errorf("%d of %d are still parked: mend the items, then retry", still, len(chosen))
	}
	return nil
}

// notRetried is what becomes of a record that could not be read: nothing.
const notRetried = "cannot be retried"

// markStillParked corrects the outcomes of entries that are still there and returns their number.
func markStillParked(outcomes []outcome, left []projections.Parked) int {
	reasons := make(map[string]string, len(left))
	for _, p := range left {
		reasons[p.ID] = p.Reason
	}
	still := 0
	for i := range outcomes {
		if reason, ok := reasons[outcomes[i].ID]; ok && outcomes[i].Result != notRetried {
			outcomes[i].Result, outcomes[i].Reason = "still parked", reason
			still++
		}
	}
	return still
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
		table.add(o.Result, shellQuote(o.ID), o.Reason)
	}
	return table.writeTo(a.stdout)
}

// inspectParked lists what is parked, and needs no rules for it.
func (a *app) inspectParked(cmd *cobra.Command) ([]projections.Parked, error) {
	ctx := cmd.Context()
	table, _, err := a.options.inspectedTable(cmd.Flags().Changed("rules"))
	if err != nil {
		return nil, err
	}
	env, err := a.options.connect(ctx, table, a.logger(a.stderr))
	if err != nil {
		return nil, err
	}
	if _, err := env.describe(ctx); err != nil {
		return nil, err
	}
	stateTable := a.options.stateTableName(table)
	owner, parked, err := projections.InspectParked(ctx, env.tables, stateTable)
	if err != nil {
		return nil, env.classify(fmt.Errorf("listing what is parked: %w", err))
	}
	return parked, env.checkOwner(stateTable, owner)
}

// withParked attaches to the table's state, without creating any, and lists what is parked.
func (a *app) withParked(ctx context.Context, use func(*projections.Engine, []projections.Parked) error) error {
	set, table, err := a.options.loadForTable()
	if err != nil {
		return err
	}
	logger := a.logger(a.stderr)
	env, err := a.options.connect(ctx, table, logger)
	if err != nil {
		return err
	}
	if _, err := env.describe(ctx); err != nil {
		return err
	}
	engine, err := projections.Open(ctx, projections.Config{
		Client: env.tables, Table: table, StateTable: a.options.stateTableName(table),
		Rules: set, Logger: logger, Attach: true,
	})
	if err != nil {
		return env.classify(err)
	}
	parked, err := engine.Parked(ctx)
	if err != nil {
		return env.classify(fmt.Errorf("listing what is parked: %w", err))
	}
	return env.classify(use(engine, parked))
}
