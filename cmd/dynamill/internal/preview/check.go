package preview

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/output"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/settings"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/rules"
)

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

// namesOf makes JSON say [] of no attributes, not null.
func namesOf(e *rules.Entity, attributes []string) attributeNames {
	return attributeNames{e.Name, append([]string{}, attributes...)}
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

// CheckResult is the result of `check` in JSON.
type CheckResult struct {
	Rules    []ruleSummary  `json:"rules"`
	Warnings []foundProblem `json:"warnings"`
	Notes    []string       `json:"notes"` // on what rules could have
	Table    *checkedTable  `json:"table,omitempty"`
}

// Check says what the rules of a file do and cost, and with withTable what a table's items are of.
func Check(ctx context.Context, out *output.Output, s *settings.Settings, withTable bool) error {
	set, err := s.Load()
	if err != nil {
		return err
	}
	result := CheckResult{Rules: make([]ruleSummary, len(set.Rules)), Warnings: []foundProblem{},
		Notes: append(variantNotes(set), echoNotes(set)...)}
	for i, rule := range set.Rules {
		result.Rules[i] = summarize(rule)
	}
	for _, w := range set.Warnings() {
		result.Warnings = append(result.Warnings, foundProblem{w.File, w.Line, w.Column, w.Code, w.Message, w.Hint})
	}
	ofTable := []foundProblem{}
	if withTable {
		if result.Table, ofTable, err = checkTable(ctx, out, s, set); err != nil {
			return err
		}
		result.Warnings = append(result.Warnings, ofTable...)
	}
	if out.JSON {
		out.PrintJSON(result)
		return nil
	}
	for _, w := range set.Warnings() {
		fmt.Fprint(out.Stderr, w.String())
	}
	out.PrintText(result.Text())
	for _, w := range ofTable {
		fmt.Fprintf(out.Stderr, "warning: %s: %s\n    hint: %s\n", w.Code, printable.Text(w.Message), printable.Text(w.Hint))
	}
	return nil
}

// Text is the result for people, without the warnings.
func (r CheckResult) Text() string {
	table := output.NewColumns("", "RULE", "KIND", "READS", "WRITES", "COST")
	for _, s := range r.Rules {
		reads := make([]string, len(s.Reads))
		for i, r := range s.Reads {
			reads[i] = r.String()
		}
		table.Add(s.Rule, s.Kind, strings.Join(reads, ", "), s.Writes.String(), s.Cost)
	}
	text := table.Text()
	for _, note := range r.Notes {
		text += printable.Text(note) + "\n"
	}
	if r.Table == nil {
		return text
	}
	return text + r.Table.Text()
}

// variantNotes say which rules could be of a variant of their kind, and when that pays.
func variantNotes(set *rules.Set) []string {
	notes, named := []string{}, map[string][]string{}
	var variants []*rules.Traits
	for _, k := range projections.Kinds {
		t := k.Traits()
		if t.Variant == "" {
			continue
		}
		for _, r := range set.Rules {
			if r.Kind.Word() == k.Word() && r.Kind.Traits().Variant == "" && !r.Derives() && !r.HasPer() {
				named[t.Variant] = append(named[t.Variant], r.Name)
			}
		}
		if !slices.ContainsFunc(variants, func(other *rules.Traits) bool { return other.Variant == t.Variant }) {
			variants = append(variants, t)
		}
	}
	for _, t := range variants {
		if names := named[t.Variant]; len(names) > 0 {
			slices.Sort(names)
			notes = append(notes, fmt.Sprintf("`%s: true` is possible for %s: %s", t.Variant, strings.Join(names, ", "), t.Pays))
		}
	}
	return notes
}

// echoNotes name copies of what a rule works out from the very items that the copy goes to: each change of one of them is written to all.
func echoNotes(set *rules.Set) (notes []string) {
	for _, r := range set.Rules {
		if !r.HasParent() {
			continue
		}
		for _, q := range set.Rules {
			echoes := func(name string) bool { return slices.Contains(q.Writes, name) }
			if q.Displays() && q.Target == r.Source && q.Source == r.Target && slices.ContainsFunc(r.Reads, echoes) {
				notes = append(notes, fmt.Sprintf("%s reads what %s works out from the %s items of a %s: each change of one of them is written to "+
					"all of them", r.Name, q.Name, q.Source.Name, q.Target.Name))
			}
		}
	}
	return notes
}

func summarize(rule *rules.Rule) ruleSummary {
	cost := rule.Form.Cost()
	s := ruleSummary{
		Rule: rule.Name, Kind: rule.KindName(), WriteUnits: cost.WriteUnits, Cost: cost.Text,
		Reads:  []attributeNames{namesOf(rule.Source, rule.Reads)},
		Writes: namesOf(rule.Target, rule.Writes),
	}
	if rule.HasParent() {
		s.Reads = append(s.Reads, namesOf(rule.Target, rule.JoinReads))
	}
	if rule.Displays() {
		s.WriteShards = rule.Suffixes()
	}
	return s
}
