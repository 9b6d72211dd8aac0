package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

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

func (a *app) checkCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Checks the rule file and says what each rule costs",
		Long: "Reports every problem of the rule file at once, each with its place and a hint, and ends with exit code 2.\n" +
			"A file without problems gives a table of its rules: what each reads, what it writes, and what it costs per\n" +
			"change in write units (WU), for items of up to 1 KB. Nothing is read from or written to AWS.",
		Example: "  dynamill check\n  dynamill check --rules blog/dynamill.yaml --json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			set, err := a.options.load()
			if err != nil {
				return err
			}
			return a.printRules(set)
		},
	}
}

func (a *app) printRules(set *rules.Set) error {
	summaries := make([]ruleSummary, len(set.Rules))
	for i, rule := range set.Rules {
		summaries[i] = summarize(rule)
	}
	if a.options.json {
		return a.printJSON(struct {
			Rules []ruleSummary `json:"rules"`
		}{summaries})
	}
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
		Kind:   kindName(rule.Kind),
		Reads:  []attributeNames{{rule.Source.Name, notNil(rule.Reads)}},
		Writes: attributeNames{rule.Target.Name, notNil(rule.Writes)},
	}
	switch rule.Kind {
	case rules.Copy:
		s.Reads = append(s.Reads, attributeNames{rule.Target.Name, notNil(rule.JoinReads)})
		s.WriteUnits, s.Cost = 1, "1 WU per child and KB"
		if !rule.Collection {
			s.Cost += " + 1 WU per child that comes, goes or changes its parent"
		}
	case rules.Mirror:
		s.WriteUnits, s.Cost = 4, "2 + 2 WU per change"
		if !rule.Injective {
			s.WriteUnits, s.Cost = 6, "2 + 2 WU per change + 2 WU for its claim"
		}
	case rules.Count, rules.Sum:
		s.WriteShards = rule.WriteShards
		s.WriteUnits, s.Cost = 2, "2 WU per change + roll-up once per batch and target"
		if rule.WriteShards > 1 {
			s.Cost += fmt.Sprintf(", %d write shards", rule.WriteShards)
		}
	}
	return s
}

func kindName(kind rules.Kind) string {
	switch kind {
	case rules.Copy:
		return "copy"
	case rules.Mirror:
		return "mirror"
	case rules.Count:
		return "count"
	case rules.Sum:
		return "sum"
	}
	return fmt.Sprintf("kind %d", kind)
}

// notNil makes JSON say [] instead of null.
func notNil(names []string) []string {
	if names == nil {
		return []string{}
	}
	return names
}
