// Package sighting says what an engine has seen of its table: how many items and records are of
// each entity, which targets do not exist, and what that tells of a rule file that does not suit
// the table. It imports projections, change and internal/printable.
package sighting

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/internal/projections"
)

// Seen is what an engine or an audit has seen.
type Seen struct {
	projections.Matches
	Targets []projections.MissingTargets
	Whole   bool // every item of the table was looked at
}

// LookAndRecord returns what an engine has seen after a replay or a drain, and records the missing
// targets for `status`. whole says that the engine has worked off every item of the table, for all rules.
func LookAndRecord(ctx context.Context, e *projections.Engine, whole bool) (Seen, error) {
	targets, err := e.LookForTargets(ctx, whole)
	if err == nil {
		err = e.RecordMissing(ctx, true)
	}
	m := e.Matches()
	return Seen{Matches: m, Targets: targets, Whole: m.Whole}, err
}

// Of returns what an engine has seen so far.
func Of(e interface {
	Matches() projections.Matches
	MissingTargets() []projections.MissingTargets
}) Seen {
	m := e.Matches()
	return Seen{Matches: m, Targets: e.MissingTargets(), Whole: m.Whole}
}

// Attributes are the matches as attributes of a log line.
func (s Seen) Attributes() []any {
	var all []any
	for _, e := range s.Entities {
		all = append(all, e.Entity, e.Items)
	}
	all = append(all, "no_entity", s.UnmatchedItems)
	if len(s.Unmatched) > 0 {
		all = append(all, "no_entity_examples", KeyList(s.Unmatched))
	}
	return all
}

// KeyStrings are keys for people.
func KeyStrings(keys []change.Key) []string {
	texts := make([]string, len(keys))
	for i, key := range keys {
		texts[i] = key.String()
	}
	return texts
}

// recordsEnough is how many records tell that a rule file does not suit a table.
const recordsEnough = 1000

// Warnings says, one line each, what seems to be wrong with the rules. over says that the command is done.
func (s Seen) Warnings(over bool) []string {
	lines := []string{}
	switch enough := over || s.Records >= recordsEnough; {
	case s.allUnmatched() && (s.Items > 0 || enough):
		lines = append(lines,
			fmt.Sprintf("no item and no record is of any entity: %s; the entities' keys in the rule file must have the form of the table's keys",
				s.unmatchedText()))
	case s.Whole && (s.Items > 0 || s.Records > 0 && enough):
		for _, e := range s.Entities {
			if e.Items+e.Records > 0 || len(e.Rules) == 0 {
				continue
			}
			line := fmt.Sprintf("nothing is of the entity %s, which %s: compare its key in the rule file with the table's keys",
				printable.Text(e.Entity), rulesDo(e.Rules, "needs", "need"))
			if len(s.Unmatched) > 0 {
				line += "; " + s.unmatchedText()
			}
			lines = append(lines, line)
		}
	}
	for _, c := range s.Cases {
		does := rulesDo(c.Rules, "compares the two and finds nothing", "compare the two and find nothing")
		if !inCaseAlone(c) {
			does = rulesDo(c.Rules, "goes by the key", "go by the key")
		}
		lines = append(lines, fmt.Sprintf("the key of %s %s says %s where its attribute %s says %s: %s",
			printable.Text(c.Entity), printable.Text(c.Item.String()), printable.Text(c.Key), printable.Text(c.Variable),
			printable.Text(c.Attribute), does))
	}
	for _, t := range s.Targets {
		if t.Warns() {
			lines = append(lines, MissingText(t))
		}
	}
	if slices.ContainsFunc(s.Cases, inCaseAlone) || slices.ContainsFunc(s.Targets, differsInCase) {
		lines = append(lines, CaseRemedy)
	}
	return lines
}

// allUnmatched reports whether items or records were looked at, and none of them was of any entity.
func (s Seen) allUnmatched() bool {
	return s.Items+s.Records > 0 && s.Items+s.Records == s.UnmatchedItems+s.UnmatchedRecords
}

func differsInCase(t projections.MissingTargets) bool { return t.OtherCase != nil }

// inCaseAlone reports whether key and attribute differ in nothing but the letter case.
func inCaseAlone(c projections.CaseMismatch) bool { return strings.EqualFold(c.Attribute, c.Key) }

// CaseRemedy is what to do where keys differ in letter case.
const CaseRemedy = `where the letter case differs: say in which case the keys hold a text, ` +
	"as in ${userId:lower}, or for all templates by `table: { case: lower }`"

// rulesDo is a clause about rules, with the verb for one or for many of them.
func rulesDo(rules []string, one, many string) string {
	n := int64(len(rules))
	return "the " + printable.Plural(n, "rule") + " " + printable.Text(strings.Join(rules, ", ")) + " " + printable.Verb(n, one, many)
}

func (s Seen) unmatchedText() string {
	return "keys that match no entity are " + KeyList(s.Unmatched)
}

// KeyList is several keys in one text.
func KeyList(keys []change.Key) string {
	return printable.Text(strings.Join(KeyStrings(keys), ", "))
}

// MissingText names the items that do not exist and at which sources of one rule point.
func MissingText(t projections.MissingTargets) string {
	about := ""
	if t.About {
		about = "about "
	}
	what := printable.Text(t.Entity) + " " + printable.Plural(t.Targets, "item")
	if t.Unique != "" {
		what = printable.Plural(t.Targets, "value") + " of " + printable.Text(t.Entity+"."+t.Unique)
	}
	text := fmt.Sprintf("rule %s: %s%s %s at %s %s that %s not exist: %s", printable.Text(t.Rule), about,
		printable.Counted(t.Sources, "source"),
		printable.Verb(t.Sources, "points", "point"), printable.Grouped(t.Targets), what, printable.Verb(t.Targets, "does", "do"),
		printable.Text(strings.Join(t.Examples, ", ")))
	switch {
	case t.OtherCase != nil:
		text += fmt.Sprintf("; %s exists, which differs from %s in letter case", printable.Text(t.OtherCase.Exists),
			printable.Text(t.OtherCase.Missing))
	case t.All:
		text += "; none of its targets exists: compare its `by` with the table's keys"
	}
	return text
}

// Warner logs each warning once.
type Warner struct{ said []string }

// Unsaid returns the warnings that are new, and remembers them.
func (w *Warner) Unsaid(all []string) []string {
	var news []string
	for _, line := range all {
		// The subject of a warning comes before its numbers and examples, which change.
		about, _, _ := strings.Cut(line, ": ")
		if rule, ok := strings.CutPrefix(line, "rule "); ok {
			about, _, _ = strings.Cut(rule, ": ")
		}
		if !slices.Contains(w.said, about) {
			w.said, news = append(w.said, about), append(news, line)
		}
	}
	return news
}
