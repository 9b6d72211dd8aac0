package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/replay/verify"
)

// verifyFinding is one difference as JSON.
type verifyFinding struct {
	Type       string  `json:"type"` // "difference"
	Rule       string  `json:"rule"`
	Kind       string  `json:"kind"`
	What       string  `json:"what"`
	Item       string  `json:"item,omitempty"`
	Group      string  `json:"group,omitempty"`
	Attribute  string  `json:"attribute,omitempty"`
	Expected   string  `json:"expected"`
	Found      string  `json:"found"`
	Status     string  `json:"status"`
	Why        string  `json:"why,omitempty"`
	WriteUnits float64 `json:"writeUnits"`
}

// verifySummary is the outcome as JSON.
type verifySummary struct {
	Type        string           `json:"type"` // "summary"
	Items       int64            `json:"items"`
	Rows        int64            `json:"stateRows"`
	Suspects    int64            `json:"suspects"`
	Cleared     int64            `json:"cleared"`
	Parked      int64            `json:"parked"`
	Differences int64            `json:"differences"`
	ByKind      map[string]int64 `json:"byKind"`
	Repaired    int64            `json:"repaired"`
	NotRepaired int64            `json:"notRepaired"`
	Undecided   map[string]int64 `json:"undecided"`
	NotJudged   []string         `json:"rulesNotLive"`
	SampleSeed  *uint64          `json:"sampleSeed,omitempty"`
	ReadUnits   float64          `json:"readUnits"`
	WriteUnits  float64          `json:"writeUnitsToRepair"`
	TempBytes   int64            `json:"temporaryBytes"`
}

// verifyReport writes what is found: as JSON at once, as a table at the end.
type verifyReport struct {
	*app
	limit      int
	table      columns
	more       int64 // found, and not printed
	waiting    []string
	streamless bool
	seed       *uint64 // of the sample; nil if all is judged
	readUnits  func() float64
	blind      func() bool // nothing tells what of the stream is applied
}

// headRows is how many rows a table has that nothing was found for.
const headRows = 1

func newVerifyReport(a *app, limit int) *verifyReport {
	r := &verifyReport{app: a, limit: limit, readUnits: func() float64 { return 0 }, blind: func() bool { return false }}
	r.table.add("RULE", "WHAT", "ITEM", "ATTRIBUTE", "EXPECTED", "FOUND", "")
	return r
}

func (r *verifyReport) found(f verify.Result) error {
	if r.options.json {
		return r.line(verifyFinding{
			Type: "difference", Rule: f.Rule, Kind: string(f.Kind), What: string(f.What), Item: itemText(f.Finding), Group: f.Group, Attribute: f.Attribute,
			Expected: f.Expected, Found: f.Found, Status: string(f.Status), Why: f.Why, WriteUnits: f.WriteUnits,
		})
	}
	if r.limit > 0 && len(r.table.rows)-headRows >= r.limit {
		r.more++
		return nil
	}
	became := ""
	if f.Status != verify.Drifted {
		became = strings.TrimSuffix(string(f.Status)+": "+f.Why, ": ")
	}
	item := itemText(f.Finding)
	if item == "" {
		item = f.Group
	}
	r.table.add(f.Rule, string(f.What)+" "+string(f.Kind), item, orDash(f.Attribute), orDash(f.Expected), orDash(f.Found), became)
	return nil
}

// itemText is the item's key; "" if it is not about one.
func itemText(f drift.Finding) string { return f.Item.String() }

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func (r *verifyReport) line(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return r.print("%s\n", line)
}

// end writes the table and the summary.
func (r *verifyReport) end(s *verify.Summary) error {
	byKind, all := map[string]int64{}, int64(0)
	for kind, n := range s.Found {
		byKind[string(kind)] = n
		all += n
	}
	if r.options.json {
		notLive := r.waiting
		if notLive == nil {
			notLive = []string{}
		}
		return r.line(verifySummary{
			Type: "summary", Items: s.Items, Rows: s.Rows, Suspects: s.Suspects, Cleared: s.Cleared, Parked: s.Parked, Differences: all, ByKind: byKind,
			Repaired: s.Repaired, NotRepaired: s.Unrepaired, Undecided: s.Undecided, NotJudged: notLive, SampleSeed: r.seed,
			ReadUnits: r.readUnits(), WriteUnits: s.WriteUnits, TempBytes: s.TempBytes,
		})
	}
	if err := r.differences(); err != nil {
		return err
	}
	return r.print("%s", r.summary(s, all))
}

// differences writes the table, if there is anything in it. With JSON every line is out already.
func (r *verifyReport) differences() error {
	if len(r.table.rows) == headRows {
		return nil
	}
	if err := r.table.writeTo(r.stdout); err != nil {
		return err
	}
	if r.more > 0 {
		if err := r.print("... %s more: --limit 0 or --json prints all\n", grouped(r.more)); err != nil {
			return err
		}
	}
	return r.print("\n")
}

// summary is the outcome for people.
func (r *verifyReport) summary(s *verify.Summary, all int64) string {
	var b strings.Builder
	looked := "looked at " + counted(int(s.Items), "item") + " and " + counted(int(s.Rows), "row") + " of the state table"
	if r.seed != nil {
		looked += fmt.Sprintf(", judged a sample (--sample-seed %d)", *r.seed)
	}
	fmt.Fprintf(&b, "%s; %s read units\n", looked, grouped(int64(r.readUnits()+0.5)))
	switch undecided := s.NotDecided(); {
	case all == 0 && undecided == 0:
		b.WriteString("no drift\n")
	case all == 0:
		fmt.Fprintf(&b, "no drift proven, %s undecided\n", grouped(undecided))
	default:
		var kinds []string
		for _, kind := range slices.Sorted(maps.Keys(s.Found)) {
			kinds = append(kinds, grouped(s.Found[kind])+" "+string(kind))
		}
		fmt.Fprintf(&b, "%s: %s\n", counted(int(all), "difference"), strings.Join(kinds, ", "))
	}
	switch {
	case s.Repaired+s.Unrepaired > 0:
		fmt.Fprintf(&b, "%s repaired, %s not\n", grouped(s.Repaired), grouped(s.Unrepaired))
	case all > 0:
		fmt.Fprintf(&b, "`dynamill verify --repair` mends them, for about %s write units\n", grouped(int64(s.WriteUnits+0.5)))
	}
	if s.Parked > 0 {
		fmt.Fprintf(&b, "%s left out, because it is parked: see `dynamill parked list`\n", grouped(s.Parked))
	}
	for _, why := range slices.Sorted(maps.Keys(s.Undecided)) {
		fmt.Fprintf(&b, "%s not decided: %s; %s\n", grouped(s.Undecided[why]), why, verify.Remedy(why))
	}
	if s.NotDecided() > 0 && r.blind() {
		b.WriteString("there is no lease table, as where a Lambda function follows the stream\n")
	}
	if len(r.waiting) > 0 {
		fmt.Fprintf(&b, "not all judged, as they are still being brought into force or taken back: %s\n", printable(strings.Join(r.waiting, ", ")))
	}
	if r.streamless {
		b.WriteString("the table has no stream: whether a difference would still have been corrected could not be told\n")
	}
	return b.String()
}
