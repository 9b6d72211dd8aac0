package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/projections"
)

// matchReport counts, as JSON, the items and records that a command looked at, by their entities.
type matchReport struct {
	Entities         []entityMatchReport `json:"entities"`
	UnmatchedItems   int64               `json:"unmatchedItems"`
	UnmatchedRecords int64               `json:"unmatchedRecords"`
	Unmatched        []string            `json:"unmatchedExamples"`
	Whole            bool                `json:"wholeTable"` // the items are all of the table
}

type entityMatchReport struct {
	Entity  string `json:"entity"`
	Items   int64  `json:"items"`
	Records int64  `json:"records"`
	KeyOnly int64  `json:"keyOnly"`
}

// missingReport is, as JSON, a rule whose sources point at items that do not exist.
type missingReport struct {
	Rule      string   `json:"rule"`
	Entity    string   `json:"entity"` // of the items that do not exist
	Sources   int64    `json:"sources"`
	Targets   int64    `json:"targets"`
	About     bool     `json:"about"` // the numbers are of a sample
	All       bool     `json:"all"`   // none of the rule's targets exists
	Examples  []string `json:"examples"`
	OtherCase string   `json:"otherCase,omitempty"` // a key that exists and differs from one of the examples in letter case alone
}

// sightings are what a command reports beside its result: matches and missing targets.
type sightings struct {
	projections.Matches
	targets []projections.MissingTargets
	whole   bool // every item of the table was looked at

	itemsOnly bool // no record was
}

// lookAndRecord returns the sightings of an engine after a replay or a drain, and records the missing
// targets for `status`. whole says that the engine has worked off every item of the table, for all rules.
func lookAndRecord(ctx context.Context, e *projections.Engine, whole bool) (sightings, error) {
	targets, err := e.LookForTargets(ctx, whole)
	if err == nil {
		err = e.RecordMissing(ctx, true)
	}
	m := e.Matches()
	return sightings{Matches: m, targets: targets, whole: m.Whole}, err
}

// sightingsOfAudit returns the sightings of an audit.
func sightingsOfAudit(ctx context.Context, audit *projections.Audit) (sightings, error) {
	targets, err := audit.LookForTargets(ctx)
	return sightings{Matches: audit.Matches(), targets: targets, whole: true, itemsOnly: true}, err
}

func (s sightings) matched() matchReport {
	m := matchReport{
		Entities: []entityMatchReport{}, UnmatchedItems: s.UnmatchedItems, UnmatchedRecords: s.UnmatchedRecords, Unmatched: keyTexts(s.Unmatched), Whole: s.whole,
	}
	for _, e := range s.Entities {
		m.Entities = append(m.Entities, entityMatchReport{e.Entity, e.Items, e.Records, e.KeyOnly})
	}
	return m
}

func (s sightings) missing() []missingReport {
	all := []missingReport{}
	for _, t := range s.targets {
		all = append(all, missingOf(t))
	}
	return all
}

func missingOf(t projections.MissingTargets) missingReport {
	m := missingReport{Rule: t.Rule, Entity: t.Entity, Sources: t.Sources, Targets: t.Targets, About: t.About, All: t.All, Examples: t.Examples}
	if t.OtherCase != nil {
		m.OtherCase = t.OtherCase.Exists
	}
	return m
}

// recordsEnough is how many records tell that a rule file does not suit a table.
const recordsEnough = 1000

// warnings says, one line each, what seems to be wrong with the rules. over says that the command is done.
func (s sightings) warnings(over bool) []string {
	lines := []string{}
	switch enough := over || s.Records >= recordsEnough; {
	case s.AllUnmatched() && (s.Items > 0 || enough):
		lines = append(lines, fmt.Sprintf("no item and no record is of any entity: %s; the entities' keys in the rule file must have the form of the table's keys", s.unmatchedText()))
	case s.whole && (s.Items > 0 || s.Records > 0 && enough):
		for _, e := range s.Unmet() {
			line := fmt.Sprintf("nothing is of the entity %s, which %s: compare its key in the rule file with the table's keys", printable.Text(e.Entity), rulesDo(e.Rules, "needs", "need"))
			if len(s.Unmatched) > 0 {
				line += "; " + s.unmatchedText()
			}
			lines = append(lines, line)
		}
	}
	for _, c := range s.Cases {
		lines = append(lines, fmt.Sprintf("the key of %s %s says %s where its attribute %s says %s: %s",
			printable.Text(c.Entity), printable.Text(c.Item.String()), printable.Text(c.Key), printable.Text(c.Variable), printable.Text(c.Attribute),
			rulesDo(c.Rules, "compares the two and finds nothing", "compare the two and find nothing")))
	}
	for _, t := range s.targets {
		if t.Warns() {
			lines = append(lines, missingText(t))
		}
	}
	if len(s.Cases) > 0 || slices.ContainsFunc(s.targets, differsInCase) {
		lines = append(lines, caseRemedy)
	}
	return lines
}

func differsInCase(t projections.MissingTargets) bool { return t.OtherCase != nil }

const caseRemedy = `where the letter case differs: join on an attribute that holds the text as the keys have it, or have the library that writes the items keep the case in keys (electrodb: casing: "none")`

// rulesDo is a clause about rules, with the verb for one or for many of them.
func rulesDo(rules []string, one, many string) string {
	n := int64(len(rules))
	return "the " + plural(n, "rule") + " " + printable.Text(strings.Join(rules, ", ")) + " " + verb(n, one, many)
}

// unmatchedText names items of no entity.
func (s sightings) unmatchedText() string {
	return "keys that match no entity are " + keyList(s.Unmatched)
}

func keyList(keys []change.Key) string {
	return printable.Text(strings.Join(keyTexts(keys), ", "))
}

// missingText names the items that do not exist and at which sources of one rule point.
func missingText(t projections.MissingTargets) string {
	about := ""
	if t.About {
		about = "about "
	}
	what := printable.Text(t.Entity) + " " + plural(t.Targets, "item")
	if t.Unique != "" {
		what = plural(t.Targets, "value") + " of " + printable.Text(t.Entity+"."+t.Unique)
	}
	text := fmt.Sprintf("rule %s: %s%s %s at %s %s that %s not exist: %s", printable.Text(t.Rule), about, counted(int(t.Sources), "source"),
		verb(t.Sources, "points", "point"), grouped(t.Targets), what, verb(t.Targets, "does", "do"), printable.Text(strings.Join(t.Examples, ", ")))
	switch {
	case t.OtherCase != nil:
		text += fmt.Sprintf("; %s exists, which differs from %s in letter case", printable.Text(t.OtherCase.Exists), printable.Text(t.OtherCase.Missing))
	case t.All:
		text += "; none of its targets exists: compare its `by` with the table's keys"
	}
	return text
}

func plural(n int64, noun string) string { return verb(n, noun, noun+"s") }

func verb(n int64, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// text is for people: one line for each entity, then examples that matched none, then missing targets,
// then warnings.
func (s sightings) text() string {
	var b strings.Builder
	if s.Items+s.Records > 0 {
		s.writeEntities(&b)
		if len(s.Unmatched) > 0 {
			fmt.Fprintf(&b, "  of no entity, for example: %s\n", keyList(s.Unmatched))
		}
	}
	for _, t := range s.targets {
		if !t.Warns() {
			fmt.Fprintf(&b, "%s\n", missingText(t))
		}
	}
	for _, warning := range s.warnings(true) {
		fmt.Fprintf(&b, "warning: %s\n", warning)
	}
	return b.String()
}

// writeEntities lists the entities with their items, if the command looked at items, and their records.
func (s sightings) writeEntities(b *strings.Builder) {
	table := columns{indent: "  "}
	add := func(entity, items, records string) {
		cells := []string{entity}
		if s.itemsOnly || s.Pass != "" {
			cells = append(cells, items)
		}
		if !s.itemsOnly {
			cells = append(cells, records)
		}
		table.add(cells...)
	}
	add("ENTITY", "ITEMS", "RECORDS")
	for _, e := range s.Entities {
		items := grouped(e.Items)
		if e.KeyOnly > 0 {
			items += fmt.Sprintf(" (%s by key alone)", grouped(e.KeyOnly))
		}
		add(e.Entity, items, grouped(e.Records))
	}
	add("(no entity)", grouped(s.UnmatchedItems), grouped(s.UnmatchedRecords))
	_ = table.writeTo(b) // which never fails
	if s.Items > 0 && !s.whole {
		b.WriteString("  the items are those that this process looked at, not all of the table\n")
	}
}

// warner logs each warning once.
type warner struct{ said []string }

// unsaid returns the warnings that are new, and remembers them.
func (w *warner) unsaid(all []string) []string {
	var unsaid []string
	for _, line := range all {
		// The subject of a warning comes before its numbers and examples, which change.
		about, _, _ := strings.Cut(line, ": ")
		if rule, ok := strings.CutPrefix(line, "rule "); ok {
			about, _, _ = strings.Cut(rule, ": ")
		}
		if !slices.Contains(w.said, about) {
			w.said, unsaid = append(w.said, about), append(unsaid, line)
		}
	}
	return unsaid
}
