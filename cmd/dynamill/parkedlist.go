package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/projections"
)

func (a *app) parkedListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "Lists what is parked",
		Long: "Lists what is parked. Of a record that could not be read, `dynamill parked show ID` shows what came. Of a contested\n" +
			"target the list names three claimants, and `show` all.",
		Example: "  dynamill parked list --table app\n  dynamill parked list --table app --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			env, parked, err := a.inspectParked(cmd)
			if err != nil {
				return err
			}
			return env.classify(a.listParked(cmd.Context(), parked))
		},
	}
}

// listedAtOnce is how many lines of a list are held, and aligned with each
// other. Thousands may be parked when a rule is wrong.
const listedAtOnce = 1_000

// listedClaimantsMax is how many claimants of a contested target a list names.
const listedClaimantsMax = 3

// listParked prints what is parked while it is read.
func (a *app) listParked(ctx context.Context, parked *projections.ParkedInspection) error {
	list := parkedList{app: a}
	err := parked.Each(ctx, func(page []projections.Parked) error {
		for _, p := range page {
			if err := list.add(entryOf(p, listedClaimantsMax)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return list.end()
}

// parkedList is a list of parked entries that is being printed.
type parkedList struct {
	*app
	table  columns
	listed int
}

func (l *parkedList) add(e parkedEntry) error {
	l.listed++
	if l.options.json {
		return l.addJSON(e)
	}
	if l.listed == 1 {
		l.table.add("ID", "RULE", "KEY", "CODE", "SINCE", "REASON")
	}
	l.table.add(printable.Shell(e.ID), e.Rule, e.Key, e.Code, e.Since, e.Reason)
	if len(l.table.rows) < listedAtOnce {
		return nil
	}
	return l.table.writeTo(l.stdout)
}

// addJSON prints an element as printJSON would print it within the whole list.
func (l *parkedList) addJSON(e parkedEntry) error {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetIndent("    ", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(e); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	before := ",\n    "
	if l.listed == 1 {
		before = "{\n  \"parked\": [\n    "
	}
	return writeText(printable.NewJSONWriter(l.stdout), before+strings.TrimSuffix(b.String(), "\n"))
}

func (l *parkedList) end() error {
	switch {
	case l.options.json && l.listed == 0:
		return l.print("{\n  \"parked\": []\n}\n")
	case l.options.json:
		return l.print("\n  ]\n}\n")
	case l.listed == 0:
		return l.print("nothing is parked\n")
	}
	return l.table.writeTo(l.stdout)
}
