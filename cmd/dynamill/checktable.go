package main

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/sighting"
	"github.com/dynamill/dynamill/projections"
	"github.com/dynamill/dynamill/rules"
)

// checkedTable is what `check --table` says of a table.
type checkedTable struct {
	Table     string          `json:"table"`
	Sampled   int             `json:"sampledItems"`
	Whole     bool            `json:"whole"` // the sample is all there is
	About     int64           `json:"approximateItems"`
	ReadUnits float64         `json:"readUnits"`
	Entities  []entityMatches `json:"entities"`
	Unmatched unmatchedItems  `json:"unmatched"`

	warnings []foundProblem
}

type entityMatches struct {
	Entity string   `json:"entity"`
	Key    string   `json:"key"`
	Items  int      `json:"items"`
	Rules  []string `json:"rules"` // that read or write items of it
}

type unmatchedItems struct {
	Items    int      `json:"items"`
	Examples []string `json:"examples"`
}

// checkTable compares the rule file with a table: its keys, and what its items are.
func (a *app) checkTable(ctx context.Context, set *rules.Set) (*checkedTable, error) {
	table, err := a.options.tableName(set)
	if err != nil {
		return nil, err
	}
	env, err := a.options.connect(ctx, table, a.logger(a.stderr))
	if err != nil {
		return nil, err
	}
	description, err := env.describe(ctx)
	if err != nil {
		return nil, err
	}
	if err := projections.CheckTable(description, set); err != nil {
		return nil, err
	}
	tally := newMatchTally(set)
	sample, err := sampleTable(ctx, env.tables, table, checkSample, func(item change.Item) error {
		tally.count(item)
		return nil
	})
	if err != nil {
		return nil, env.classify(fmt.Errorf("reading a sample of table %q: %w", table, err))
	}
	return newCheckedTable(table, aws.ToInt64(description.ItemCount), sample, tally), nil
}

func newCheckedTable(table string, about int64, sample tableSample, tally *matchTally) *checkedTable {
	c := &checkedTable{
		Table: table, Sampled: sample.items, Whole: sample.whole, About: max(about, int64(sample.items)), ReadUnits: sample.readUnits,
		Unmatched: unmatchedItems{tally.unmatched, sighting.KeyTexts(tally.examples)},
	}
	if sample.whole {
		c.About = int64(sample.items)
	}
	for _, e := range tally.set.Entities {
		c.Entities = append(c.Entities, entityMatches{e.Name, e.KeyText(), tally.matched[e], notNil(tally.set.RulesOf(e))})
	}
	if sample.items == 0 {
		return c // an empty table says nothing about the rules
	}
	for _, e := range tally.unmet() {
		c.warnings = append(c.warnings, tally.warning(e))
	}
	return c
}

// printTable says the same to people.
func (a *app) printTable(c *checkedTable) error {
	if c.Sampled == 0 {
		return a.print("\ntable %s holds no items yet: run the check again when it does\n", c.Table)
	}
	sampled := fmt.Sprintf("all %s", counted(c.Sampled, "item"))
	if !c.Whole {
		sampled = fmt.Sprintf("%s of about %s", counted(c.Sampled, "item"), grouped(c.About))
	}
	if err := a.print("\ntable %s: %s read, for %s read units\n", c.Table, sampled, fmt.Sprintf("%g", c.ReadUnits)); err != nil {
		return err
	}
	var table columns
	table.add("ENTITY", "ITEMS", "KEY")
	for _, e := range c.Entities {
		table.add(e.Entity, grouped(int64(e.Items)), e.Key)
	}
	table.add("(none)", grouped(int64(c.Unmatched.Items)), "")
	if err := table.writeTo(a.stdout); err != nil {
		return err
	}
	if len(c.Unmatched.Examples) == 0 {
		return nil
	}
	if err := a.print("keys of items of no entity, such as:\n"); err != nil {
		return err
	}
	for _, key := range c.Unmatched.Examples {
		if err := a.print("  %s\n", key); err != nil {
			return err
		}
	}
	return nil
}
