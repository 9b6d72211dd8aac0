package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/progress"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/printable"
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
	Outcome     verifyOutcome    `json:"outcome"`
	Open        []string         `json:"open"` // what was not decided or not compared, and what helps
	Items       int64            `json:"items"`
	Rows        int64            `json:"stateRows"`
	Suspects    int64            `json:"suspects"`
	Cleared     int64            `json:"cleared"`
	Parked      int64            `json:"parked"`        // differences that are left out
	Entries     int              `json:"parkedEntries"` // in the state table, contested targets among them
	Differences int64            `json:"differences"`
	ByKind      map[string]int64 `json:"byKind"`
	Repaired    int64            `json:"repaired"`
	NotRepaired int64            `json:"notRepaired"`
	Undecided   map[string]int64 `json:"undecided"`
	Examples    []verifyOpen     `json:"undecidedExamples"`
	NotJudged   []string         `json:"rulesNotLive"`
	OnlyRules   []string         `json:"onlyRules,omitempty"` // of --rule
	Sample      float64          `json:"sample,omitempty"`    // the share that was judged, if not all was
	SampleSeed  *uint64          `json:"sampleSeed,omitempty"`
	ReadUnits   float64          `json:"readUnits"`
	WriteUnits  float64          `json:"writeUnitsToRepair"`
	TempBytes   int64            `json:"temporaryBytes"`
	Matched     matchReport      `json:"matched"`
	Missing     []missingReport  `json:"missingTargets"`
	Warnings    []string         `json:"warnings"`
}

// verifyOpen is an undecided difference as JSON.
type verifyOpen struct {
	Why       string `json:"why"`
	Rule      string `json:"rule"`
	Kind      string `json:"kind"`
	Item      string `json:"item,omitempty"`
	Group     string `json:"group,omitempty"`
	Attribute string `json:"attribute,omitempty"`
}

// verifyReport writes what is found: as JSON at once, as a table at the end.
type verifyReport struct {
	*app
	limit         int
	table         columns
	more          int64    // found, and not printed
	waiting       []string // rules that are not judged
	rules         []string // of --rule
	leases        leaseWatch
	parkedEntries int // in the state table
	streamless    bool
	share         float64 // of --sample, if not all is judged
	seed          *uint64 // of the sample; nil if all is judged
	readUnits     func() float64
	seen          sightings
	blind         func() bool // nothing tells what of the stream is applied
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
		return r.printJSONLine(verifyFinding{
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

// facts returns the facts that decide the outcome.
func (r *verifyReport) facts(s *verify.Summary) verifyFacts {
	return verifyFacts{drift: s.Drift(), undecided: s.Undecided, parked: s.Parked, waiting: r.waiting, unfollowed: r.leases.unfollowed()}
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
		examples := []verifyOpen{}
		for _, e := range s.Examples {
			examples = append(examples, verifyOpen{Why: e.Why, Rule: e.Rule, Kind: string(e.Kind), Item: itemText(e.Finding), Group: e.Group, Attribute: e.Attribute})
		}
		became := r.facts(s)
		return r.printJSONLine(verifySummary{
			Type: "summary", Entries: r.parkedEntries, Outcome: became.outcome(), Open: became.open(), Examples: examples, OnlyRules: r.rules, Sample: r.share, Items: s.Items, Rows: s.Rows, Suspects: s.Suspects, Cleared: s.Cleared, Parked: s.Parked, Differences: all, ByKind: byKind,
			Repaired: s.Repaired, NotRepaired: s.Unrepaired, Undecided: s.Undecided, NotJudged: notLive, SampleSeed: r.seed,
			ReadUnits: r.readUnits(), WriteUnits: s.WriteUnits, TempBytes: s.TempBytes,
			Matched: r.seen.matched(), Missing: r.seen.missing(), Warnings: r.seen.Warnings(true),
		})
	}
	if err := r.differences(); err != nil {
		return err
	}
	if err := r.printOutcome(r.colour(s), r.summary(s, all)); err != nil {
		return err
	}
	return r.printText(r.met())
}

// colour is that of a verification's outcome: clean is green only without a warning.
func (r *verifyReport) colour(s *verify.Summary) string {
	switch outcome := r.facts(s).outcome(); {
	case outcome == outcomeDrift:
		return progress.Red
	case outcome == outcomeUndecided, len(r.seen.Warnings(true)) > 0:
		return progress.Yellow
	}
	return progress.Green
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
	became := r.facts(s)
	switch {
	case all > 0:
		var kinds []string
		for _, kind := range slices.Sorted(maps.Keys(s.Found)) {
			kinds = append(kinds, grouped(s.Found[kind])+" "+string(kind))
		}
		fmt.Fprintf(&b, "%s: %s\n", counted(int(all), "difference"), strings.Join(kinds, ", "))
	case became.outcome() == outcomeUndecided:
		b.WriteString("undecided: whether everything derived is right could not be told\n")
	default:
		b.WriteString("no drift" + r.within() + "\n")
	}
	switch {
	case s.Repaired+s.Unrepaired > 0:
		fmt.Fprintf(&b, "%s repaired, %s not\n", grouped(s.Repaired), grouped(s.Unrepaired))
	case all > 0:
		fmt.Fprintf(&b, "`dynamill verify --repair` mends them, for about %s write units\n", grouped(int64(s.WriteUnits+0.5)))
	}
	for _, line := range became.open() {
		b.WriteString(printable.Text(line) + "\n")
	}
	if r.parkedEntries > 0 && s.Parked == 0 {
		fmt.Fprintf(&b, "%s parked or contested, which is not drift: see `dynamill parked list`\n", grouped(int64(r.parkedEntries)))
	}
	b.WriteString(openExamples(s))
	if s.NotDecided() > 0 && r.blind() {
		b.WriteString("there is no lease table, as where a Lambda function follows the stream\n")
	}
	if r.streamless && all > 0 {
		b.WriteString("the table has no stream: whether a difference would still have been corrected could not be told\n")
	}
	return b.String()
}

// met says for people what the rules met in the table.
func (r *verifyReport) met() string {
	text := r.seen.text()
	if r.seed != nil && len(r.seen.Targets) > 0 {
		text += "the sources and targets are those of the sample\n"
	}
	return text
}

// within says what a verification of not everything was confined to.
func (r *verifyReport) within() string {
	text := ""
	if r.seed != nil {
		text = " in the sample of " + strconv.FormatFloat(100*r.share, 'g', -1, 64) + "%"
	}
	if len(r.rules) > 0 {
		text += " of " + printable.Text(strings.Join(r.rules, ", "))
	}
	return text
}

// openExamples names some of what was not decided, below its reason.
func openExamples(s *verify.Summary) string {
	if len(s.Examples) == 0 {
		return ""
	}
	var b strings.Builder
	table := columns{indent: "  "}
	for _, e := range s.Examples {
		where := itemText(e.Finding)
		if where == "" {
			where = e.Group
		}
		table.add(e.Rule, string(e.Kind), where, orDash(e.Attribute), e.Why)
	}
	b.WriteString("among what was not decided:\n")
	_ = table.writeTo(&b)
	return b.String()
}
