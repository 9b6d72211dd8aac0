package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/progress"
	"github.com/dynamill/dynamill/projections"
	"github.com/dynamill/dynamill/replay/verify"
	"github.com/dynamill/dynamill/rules"
)

// examplesMax is how many examples of each rule a dry run shows.
const examplesMax = 3

// preview is what a replay would change of one rule.
type preview struct {
	Rule       string   `json:"rule"`
	Changes    int64    `json:"changes"`
	WriteUnits float64  `json:"writeUnits"`
	Examples   []string `json:"examples"`
}

// previewed is the result of `replay --dry-run`.
type previewed struct {
	Table      string    `json:"table"`
	Items      int64     `json:"items"`
	Changes    int64     `json:"changes"`
	WriteUnits float64   `json:"writeUnits"` // about
	ReadUnits  float64   `json:"readUnits"`  // of the scans
	Rules      []preview `json:"rules"`
	// NotForeseen rules read what others would write first.
	NotForeseen []unforeseen    `json:"notForeseen"`
	Matched     matchReport     `json:"matched"`
	Missing     []missingReport `json:"missingTargets"`
	Warnings    []string        `json:"warnings"`

	seen sightings
}

// unforeseen is a rule of which a dry run cannot tell all.
type unforeseen struct {
	Rule  string   `json:"rule"`
	Reads []string `json:"reads"` // rules that write what it reads
}

// dryRun says what a replay would change. It reads both tables and writes nothing.
func (r *replayer) dryRun(ctx context.Context) error {
	audit, err := projections.OpenAudit(ctx, projections.AuditConfig{
		Client: r.env.tables, Table: r.env.table, StateTable: r.env.stateTable, Rules: r.set, Names: r.options.rules, Logger: r.logger, Ahead: true,
	})
	if err != nil {
		return r.env.classify(fmt.Errorf("looking at table %q: %w", r.env.table, err))
	}
	pace := verify.NewReadPace(r.options.readRateMax)
	items := &verify.Scan{Client: r.env.tables, TableName: r.env.table, Segments: min(r.options.segments, scanSegmentsMax), Pace: pace}
	rows := &verify.Scan{Client: r.env.tables, TableName: r.env.stateTable, Pace: pace}
	byRule := map[string]*preview{}
	cfg := verify.Config{
		Auditor: audit, Items: items, Ahead: true, Logger: r.logger,
		Found: func(found verify.Result) error {
			p := byRule[found.Rule]
			if p == nil {
				p = &preview{Rule: found.Rule}
				byRule[found.Rule] = p
			}
			p.Changes++
			p.WriteUnits += found.WriteUnits
			if len(p.Examples) < examplesMax {
				p.Examples = append(p.Examples, exampleOf(found))
			}
			return nil
		},
	}
	watch := &verifyWatch{message: "looking what would change", items: r.counts.items, rows: r.counts.stateItems}
	cfg.Progress = watch.note
	if r.counts.state {
		cfg.Rows = rows
	}
	stop := progress.Start(ctx, r.status, r.logger, watch.state)
	summary, err := verify.Run(ctx, cfg)
	var seen sightings
	if err == nil {
		seen, err = sightingsOfAudit(ctx, audit)
	}
	stop()
	if err != nil {
		return r.env.classify(fmt.Errorf("looking what would change: %w", err))
	}
	result := previewed{Rules: []preview{}, Table: r.env.table, Items: summary.Items, WriteUnits: summary.WriteUnits, ReadUnits: items.ReadUnits() + rows.ReadUnits()}
	result.seen, result.Matched, result.Missing, result.Warnings = seen, seen.matched(), seen.missing(), seen.Warnings(true)
	for _, p := range slices.SortedFunc(maps.Values(byRule), func(a, b *preview) int { return cmp.Compare(a.Rule, b.Rule) }) {
		result.Rules = append(result.Rules, *p)
		result.Changes += p.Changes
	}
	result.NotForeseen = r.notForeseen(func(rule string) bool { return byRule[rule] != nil })
	return r.printPreview(result)
}

// notForeseen lists the rules that read what rules would write that would change
// something, or cannot be foreseen themselves.
func (r *replayer) notForeseen(changes func(rule string) bool) []unforeseen {
	found := map[string][]string{}
	for more := true; more; {
		more = false
		for _, reader := range r.set.Rules {
			if len(r.options.rules) > 0 && !slices.Contains(r.options.rules, reader.Name) {
				continue
			}
			for _, writer := range r.set.Rules {
				moves := changes(writer.Name) || found[writer.Name] != nil
				if moves && feeds(writer, reader) && !slices.Contains(found[reader.Name], writer.Name) {
					found[reader.Name] = append(found[reader.Name], writer.Name)
					more = true
				}
			}
		}
	}
	list := []unforeseen{}
	for _, rule := range r.set.Rules {
		if reads := found[rule.Name]; reads != nil {
			list = append(list, unforeseen{rule.Name, reads})
		}
	}
	return list
}

// feeds reports whether one rule writes what another depends on: items that it
// reads or writes on, or attributes that it reads of them.
func feeds(writer, reader *rules.Rule) bool {
	if writer == reader {
		return false
	}
	reads := func(of *rules.Entity, attributes []string) bool {
		return sameItems(writer.Target, of) && (writer.MakesItems() ||
			slices.ContainsFunc(writer.Writes, func(name string) bool { return slices.Contains(attributes, name) }))
	}
	return reads(reader.Source, reader.Reads) || !reader.MakesItems() && reads(reader.Target, reader.JoinReads)
}

// exampleOf says one change in a line: where, and from what to what.
func exampleOf(found verify.Result) string {
	where := string(found.Kind) + " "
	switch {
	case found.Item.Partition != "":
		where += found.Item.String()
	default:
		where += found.Group
	}
	if found.Attribute != "" {
		where += "." + found.Attribute
	}
	return fmt.Sprintf("%s: %s → %s", where, cmp.Or(found.Found, "nothing"), cmp.Or(found.Expected, "nothing"))
}

func (r *replayer) printPreview(result previewed) error {
	if r.app.options.json {
		return r.app.printJSON(result)
	}
	if err := r.app.printText(result.seen.text()); err != nil {
		return err
	}
	if result.Changes == 0 {
		return r.app.print("a replay would change nothing: each of %s is as the rules ask for\n", counted(int(result.Items), "item"))
	}
	var table columns
	table.add("RULE", "CHANGES", "WRITE UNITS", "SUCH AS")
	for _, p := range result.Rules {
		for i, example := range p.Examples {
			if i == 0 {
				table.add(p.Rule, grouped(p.Changes), grouped(int64(p.WriteUnits+0.5)), example)
			} else {
				table.add("", "", "", example)
			}
		}
	}
	if err := table.writeTo(r.app.stdout); err != nil {
		return err
	}
	for _, rule := range result.NotForeseen {
		if err := r.app.print("not foreseen: %s, which reads what %s will write\n", rule.Rule, strings.Join(rule.Reads, ", ")); err != nil {
			return err
		}
	}
	return r.app.print("a replay would change %s of %s, for about %s write units; what the stream has not brought yet is among them\n",
		counted(int(result.Changes), "thing"), counted(int(result.Items), "item"), grouped(int64(result.WriteUnits+0.5)))
}
