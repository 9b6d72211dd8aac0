package replaying

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/output"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/preview"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/report"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/verifying"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/internal/projections/audits"
	"github.com/dynamill/dynamill/internal/replay/verify"
	"github.com/dynamill/dynamill/internal/rules"
)

const examplesMax = 3

type rulePreview struct {
	Rule       string   `json:"rule"`
	Changes    int64    `json:"changes"`
	WriteUnits float64  `json:"writeUnits"`
	Examples   []string `json:"examples"`
}

// Previewed is the result of `replay --dry-run`.
type Previewed struct {
	Table      string        `json:"table"`
	Items      int64         `json:"items"`
	Changes    int64         `json:"changes"`
	WriteUnits float64       `json:"writeUnits"` // about
	ReadUnits  float64       `json:"readUnits"`  // of the scans
	Rules      []rulePreview `json:"rules"`
	Orphans    []orphans     `json:"orphans"` // which a replay leaves
	// NotForeseen rules read what others would write first.
	NotForeseen []unforeseen `json:"notForeseen"`
	// NotJudged rules count by stream position: a replay does nothing for them, and only a count of the table judges them.
	NotJudged []string `json:"notJudged"`
	report.Seen

	seen report.Sightings
}

// orphans are the items of a rule whose parents are gone.
type orphans struct {
	Rule  string `json:"rule"`
	Items int64  `json:"items"`

	text string
}

// unforeseen is a rule of which a dry run cannot tell all.
type unforeseen struct {
	Rule  string   `json:"rule"`
	Reads []string `json:"reads"` // rules that write what it reads
}

// dryRun says what a replay would change. It reads both tables and writes nothing.
func (r *replayer) dryRun(ctx context.Context) error {
	ahead := r.AuditConfig(r.options.Rules)
	ahead.Ahead = true
	audit, err := audits.Open(ctx, ahead)
	if err != nil {
		return r.Env.Classify(fmt.Errorf("looking at table %q: %w", r.Table, err))
	}
	scans := verifying.NewScans(r.Session, r.options.Segments, r.options.ReadRateMax)
	result, byRule := Previewed{Table: r.Table, Rules: []rulePreview{}, Orphans: []orphans{}}, map[string]*rulePreview{}
	left := map[string]int64{}
	cfg := verify.Config{
		Items: scans.Items, Ahead: true,
		Found: func(found verify.Result) error {
			if found.Status == verify.Listed {
				left[found.Rule]++
				return nil
			}
			p := cmp.Or(byRule[found.Rule], &rulePreview{Rule: found.Rule})
			byRule[found.Rule] = p
			p.Changes++
			p.WriteUnits += found.WriteUnits
			if len(p.Examples) < examplesMax {
				p.Examples = append(p.Examples, exampleOf(found))
			}
			return nil
		},
	}
	if r.counts.State {
		cfg.Rows = scans.Rows
	}
	watch := &verifying.Watch{Message: "looking what would change", Counts: r.counts}
	summary, seen, err := watch.Verify(ctx, r.Session, audit, cfg)
	if err != nil {
		return r.Env.Classify(fmt.Errorf("looking what would change: %w", err))
	}
	result.Items, result.Changes, result.WriteUnits, result.ReadUnits = summary.Items, summary.All, summary.WriteUnits, scans.ReadUnits()
	result.seen, result.Seen = seen, seen.Report()
	for _, rule := range slices.Sorted(maps.Keys(byRule)) {
		result.Rules = append(result.Rules, *byRule[rule])
	}
	for _, rule := range r.Set.Rules {
		if n := left[rule.Name]; n > 0 {
			result.Orphans = append(result.Orphans, orphans{rule.Name, n, preview.OrphansText(rule, n)})
		}
	}
	result.NotJudged = append([]string{}, slices.DeleteFunc(r.Set.Folded(), func(name string) bool {
		return len(r.options.Rules) > 0 && !slices.Contains(r.options.Rules, name)
	})...)
	result.NotForeseen = r.notForeseen(func(rule string) bool { return byRule[rule] != nil })
	r.PrintResult(result)
	return nil
}

// notForeseen lists the rules that read what another rule would change, or what another rule of this list writes: a dry run
// cannot tell all that they would change.
func (r *replayer) notForeseen(changes func(rule string) bool) []unforeseen {
	found := map[string][]string{}
	for more := true; more; {
		more = false
		for _, reader := range r.Set.Rules {
			if len(r.options.Rules) > 0 && !slices.Contains(r.options.Rules, reader.Name) {
				continue
			}
			for _, writer := range r.Set.Rules {
				moves := changes(writer.Name) || found[writer.Name] != nil
				if moves && feeds(writer, reader) && !slices.Contains(found[reader.Name], writer.Name) {
					found[reader.Name] = append(found[reader.Name], writer.Name)
					more = true
				}
			}
		}
	}
	list := []unforeseen{}
	for _, rule := range r.Set.Rules {
		if reads := found[rule.Name]; reads != nil {
			list = append(list, unforeseen{rule.Name, reads})
		}
	}
	return list
}

// feeds reports whether one rule writes what another depends on: items that it reads or writes on, or attributes of them.
func feeds(writer, reader *rules.Rule) bool {
	if writer == reader {
		return false
	}
	reads := func(of *rules.Entity, attributes []string) bool {
		return writer.Target.HasKeysLike(of) && (writer.MakesItems() ||
			slices.ContainsFunc(writer.Writes, func(name string) bool { return slices.Contains(attributes, name) }))
	}
	return reads(reader.Source, reader.Reads) || !reader.MakesItems() && reads(reader.Target, reader.JoinReads)
}

// exampleOf says one change in a line: where, and from what to what.
func exampleOf(found verify.Result) string {
	where := string(found.Kind) + " " + cmp.Or(found.Item.String(), found.Group)
	if found.Attribute != "" {
		where += "." + found.Attribute
	}
	return fmt.Sprintf("%s: %s → %s", where, cmp.Or(found.Found, "nothing"), cmp.Or(found.Expected, "nothing"))
}

// Text says it to people.
func (p Previewed) Text() string {
	text := p.seen.Text()
	for _, o := range p.Orphans {
		text += printable.Text(o.Rule+": "+o.text) + "\n"
	}
	if len(p.NotJudged) > 0 {
		text += printable.Text("not looked at: "+strings.Join(p.NotJudged, ", ")+", for which a replay does nothing: `dynamill run` "+
			"counts such rules, and `dynamill verify` compares them") + "\n"
	}
	if p.Changes == 0 {
		return text + fmt.Sprintf("a replay would change nothing: each of %s is as the rules ask for\n", printable.Counted(p.Items, "item"))
	}
	table := output.NewColumns("", "RULE", "CHANGES", "WRITE UNITS", "SUCH AS")
	for _, rule := range p.Rules {
		table.Add(rule.Rule, printable.Grouped(rule.Changes), printable.Rounded(rule.WriteUnits), rule.Examples[0])
		for _, example := range rule.Examples[1:] {
			table.Add("", "", "", example)
		}
	}
	text += table.Text()
	for _, rule := range p.NotForeseen {
		line := fmt.Sprintf("not foreseen in full: %s reads what %s would write", rule.Rule, strings.Join(rule.Reads, ", "))
		text += printable.Text(line) + "\n"
	}
	return text + fmt.Sprintf("a replay would change %s of %s, for about %s write units; "+
		"they include changes that the stream has not delivered yet\n",
		printable.Counted(p.Changes, "thing"), printable.Counted(p.Items, "item"), printable.Rounded(p.WriteUnits))
}
