// Package report holds what the results of several commands have in common: the entities of the items that a command looked
// at, targets that do not exist, and what the engine wrote. It imports output, projections and internal/sighting.
package report

import (
	"context"
	"fmt"
	"strings"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/output"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/progress"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/projections/audits"
	"github.com/dynamill/dynamill/internal/sighting"
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

// MissingReport is, as JSON, a rule whose sources point at items that do not exist.
type MissingReport struct {
	Rule      string   `json:"rule"`
	Entity    string   `json:"entity"` // of the items that do not exist
	Sources   int64    `json:"sources"`
	Targets   int64    `json:"targets"`
	About     bool     `json:"about"` // the numbers are of a sample
	All       bool     `json:"all"`   // none of the rule's targets exists
	Examples  []string `json:"examples"`
	OtherCase string   `json:"otherCase,omitempty"` // a key that exists and differs from one of the examples in letter case alone
}

// Seen is, as JSON, what a command has seen of the table beside its result.
type Seen struct {
	Matched  matchReport     `json:"matched"`
	Missing  []MissingReport `json:"missingTargets"`
	Warnings []string        `json:"warnings"`
}

// Sightings are what a command reports beside its result.
type Sightings struct {
	sighting.Seen
	itemsOnly bool // no record was looked at
}

// SightingsOfAudit returns the sightings of an audit.
func SightingsOfAudit(ctx context.Context, audit *audits.Audit) (Sightings, error) {
	targets, err := audit.LookForTargets(ctx)
	return Sightings{sighting.Seen{Matches: audit.Matches(), Targets: targets, Whole: true}, true}, err
}

// Report is what was seen as JSON.
func (s Sightings) Report() Seen {
	r := Seen{
		Matched: matchReport{
			Entities: []entityMatchReport{}, UnmatchedItems: s.UnmatchedItems, UnmatchedRecords: s.UnmatchedRecords,
			Unmatched: sighting.KeyStrings(s.Unmatched), Whole: s.Whole,
		},
		Missing: []MissingReport{}, Warnings: s.Warnings(true),
	}
	for _, e := range s.Entities {
		r.Matched.Entities = append(r.Matched.Entities, entityMatchReport{e.Entity, e.Items, e.Records, e.KeyOnly})
	}
	for _, t := range s.Targets {
		r.Missing = append(r.Missing, MissingOf(t))
	}
	return r
}

// MissingOf is one rule's missing targets as JSON.
func MissingOf(t projections.MissingTargets) MissingReport {
	m := MissingReport{Rule: t.Rule, Entity: t.Entity, Sources: t.Sources, Targets: t.Targets, About: t.About, All: t.All,
		Examples: t.Examples}
	if t.OtherCase != nil {
		m.OtherCase = t.OtherCase.Exists
	}
	return m
}

// Text is for people: one line for each entity, then examples that matched none, then missing targets, then warnings.
func (s Sightings) Text() string {
	var b strings.Builder
	if s.Items+s.Records > 0 {
		s.writeEntities(&b)
		if len(s.Unmatched) > 0 {
			fmt.Fprintf(&b, "  of no entity, for example: %s\n", sighting.KeyList(s.Unmatched))
		}
	}
	for _, t := range s.Targets {
		if !t.Warns() {
			fmt.Fprintf(&b, "%s\n", sighting.MissingText(t))
		}
	}
	for _, warning := range s.Warnings(true) {
		fmt.Fprintf(&b, "warning: %s\n", warning)
	}
	return b.String()
}

// PrintBehind prints them behind the line that says how work ended, with so many parked records.
func (s Sightings) PrintBehind(out *output.Output, line string, parked int) {
	colour := progress.Green
	if parked > 0 {
		colour = progress.Yellow
	}
	out.PrintOutcome(colour, printable.Text(line)+"\n")
	out.PrintText(s.Text())
}

// writeEntities lists the entities with their items, if the command looked at items, and their records.
func (s Sightings) writeEntities(b *strings.Builder) {
	table := &output.Columns{Indent: "  "}
	add := func(entity, items, records string) {
		cells := []string{entity}
		if s.itemsOnly || s.Pass != "" {
			cells = append(cells, items)
		}
		if !s.itemsOnly {
			cells = append(cells, records)
		}
		table.Add(cells...)
	}
	add("ENTITY", "ITEMS", "RECORDS")
	for _, e := range s.Entities {
		items := printable.Grouped(e.Items)
		if e.KeyOnly > 0 {
			items += fmt.Sprintf(" (%s by key alone)", printable.Grouped(e.KeyOnly))
		}
		add(e.Entity, items, printable.Grouped(e.Records))
	}
	add("(no entity)", printable.Grouped(s.UnmatchedItems), printable.Grouped(s.UnmatchedRecords))
	b.WriteString(table.Text())
	if s.Items > 0 && !s.Whole {
		b.WriteString("  the items are those that this process looked at, not all of the table\n")
	}
}

// StillRetiring says of a former rule that it is not taken back yet.
const StillRetiring = "was changed or removed before, and what it wrote is still being taken back: `dynamill replay` or `dynamill " +
	"run` finishes it"

// EngineWork is what an engine did for a command.
type EngineWork struct {
	Writes     int64              `json:"writes"`                     // requests
	WriteUnits float64            `json:"writeUnits"`                 // of all rules
	Rules      map[string]float64 `json:"writeUnitsByRule,omitempty"` // of the rules that wrote anything
}

// WorkOf sums up what an engine wrote, in all and by rule.
func WorkOf(all projections.Stats, byRule []projections.RuleStats) EngineWork {
	w := EngineWork{Writes: all.Writes, Rules: map[string]float64{}}
	for _, rule := range byRule {
		if w.WriteUnits += rule.WriteUnits; rule.WriteUnits > 0 {
			w.Rules[rule.Rule] = rule.WriteUnits
		}
	}
	return w
}
