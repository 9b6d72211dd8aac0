package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/rules"
)

// ruleSummary is what `check` says of one rule.
type ruleSummary struct {
	Rule        string           `json:"rule"`
	Kind        string           `json:"kind"`
	Reads       []attributeNames `json:"reads"`
	Writes      attributeNames   `json:"writes"`
	WriteShards int              `json:"writeShards,omitempty"`
	WriteUnits  int              `json:"writeUnitsPerChange"` // for items of up to 1 KB, beside what a batch shares
	Cost        string           `json:"cost"`
}

// attributeNames names attributes of one entity. The key is always read and is not among them.
type attributeNames struct {
	Entity     string   `json:"entity"`
	Attributes []string `json:"attributes"`
}

func (n attributeNames) String() string {
	if len(n.Attributes) == 0 {
		return n.Entity
	}
	return n.Entity + "(" + strings.Join(n.Attributes, ", ") + ")"
}

// foundProblem is a problem or a warning in JSON. Those of a table have no place.
type foundProblem struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// checkResult is the result of `check` in JSON.
type checkResult struct {
	Rules    []ruleSummary  `json:"rules"`
	Warnings []foundProblem `json:"warnings"`
	Table    *checkedTable  `json:"table,omitempty"`
}

func (a *app) checkCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check [FILE]",
		Short: "Checks the rule file and says what each rule costs",
		Long: "Reports every problem of the rule file at once, each with its place and a hint, and ends with exit code 2.\n" +
			"A file without problems gives a table of its rules: what each reads, what it writes, and what it costs per\n" +
			"change in write units (WU), for items of up to 1 KB. Warnings go to standard error and leave the exit code at 0.\n" +
			"The file is FILE, or that of --rules; - reads standard input. Nothing is read from or written to AWS.\n\n" +
			"With --table on the command line, check also reads a sample of the table: its key schema, and up to 1,000\n" +
			"items from all over it, for at most 8,192 read units. It says how many of them are of each entity, shows\n" +
			"keys of items that are of none, and warns of each entity of the rules that no item is of. It writes nothing.",
		Example: "  dynamill check\n  dynamill check blog/dynamill.yaml --json\n  dynamill check --table app",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.nameRules(args); err != nil {
				return err
			}
			return a.check(cmd.Context())
		},
	}
}

// nameRules takes the rule file that stands on the command line without a flag.
func (a *app) nameRules(args []string) error {
	if len(args) == 0 {
		return nil
	}
	if a.typed["rules"] && a.options.rules != args[0] {
		return invalid("two rule files are given, %s and --rules %s: give one", args[0], a.options.rules)
	}
	a.options.rules = args[0]
	return nil
}

func (a *app) check(ctx context.Context) error {
	set, err := a.options.load()
	if err != nil {
		return err
	}
	result := checkResult{Rules: make([]ruleSummary, len(set.Rules)), Warnings: []foundProblem{}}
	for i, rule := range set.Rules {
		result.Rules[i] = summarize(rule)
	}
	for _, w := range set.Warnings() {
		result.Warnings = append(result.Warnings, foundProblem{w.File, w.Line, w.Column, w.Code, w.Message, w.Hint})
	}
	if a.typed["table"] { // a table of the environment or a file does not make check connect
		if result.Table, err = a.checkTable(ctx, set); err != nil {
			return err
		}
		result.Warnings = append(result.Warnings, result.Table.warnings...)
	}
	if a.options.json {
		return a.printJSON(result)
	}
	for _, w := range set.Warnings() {
		fmt.Fprint(a.stderr, w.String())
	}
	if err := a.printRules(result.Rules); err != nil || result.Table == nil {
		return err
	}
	if err := a.printTable(result.Table); err != nil {
		return err
	}
	for _, w := range result.Table.warnings {
		fmt.Fprintf(a.stderr, "warning: %s: %s\n    hint: %s\n", w.Code, printable.Text(w.Message), printable.Text(w.Hint))
	}
	return nil
}

func (a *app) printRules(summaries []ruleSummary) error {
	var table columns
	table.add("RULE", "KIND", "READS", "WRITES", "COST")
	for _, s := range summaries {
		reads := make([]string, len(s.Reads))
		for i, r := range s.Reads {
			reads[i] = r.String()
		}
		table.add(s.Rule, s.Kind, strings.Join(reads, ", "), s.Writes.String(), s.Cost)
	}
	return table.writeTo(a.stdout)
}

func summarize(rule *rules.Rule) ruleSummary {
	s := ruleSummary{
		Rule:   rule.Name,
		Kind:   rule.Kind.Word(),
		Reads:  []attributeNames{{rule.Source.Name, notNil(rule.Reads)}},
		Writes: attributeNames{rule.Target.Name, notNil(rule.Writes)},
	}
	switch {
	case rule.HasParent():
		s.Reads = append(s.Reads, attributeNames{rule.Target.Name, notNil(rule.JoinReads)})
		s.WriteUnits, s.Cost = 1, "1 WU per child and KB"
		if !rule.Collection {
			s.Cost += " + 1 WU per child that comes, goes or changes its parent"
		}
	case rule.MakesItems():
		s.WriteUnits, s.Cost = 4, "2 + 2 WU per change"
		if !rule.Injective {
			s.WriteUnits, s.Cost = 6, "2 + 2 WU per change + 2 WU for its claim"
		}
	case rule.Displays():
		s.WriteShards = rule.Suffixes()
		s.WriteUnits, s.Cost = 2, "2 WU per change + roll-up once per batch and target"
		if rule.Suffixes() > 1 {
			s.Cost += fmt.Sprintf(", %d write shards", rule.Suffixes())
		}
	}
	return s
}

// notNil makes JSON say [] instead of null.
func notNil(names []string) []string {
	if names == nil {
		return []string{}
	}
	return names
}
