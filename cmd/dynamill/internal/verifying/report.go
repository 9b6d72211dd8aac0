package verifying

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/followed"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/output"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/progress"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/report"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/internal/replay/verify"
)

// Finding is one difference as JSON.
type Finding struct {
	Type string `json:"type"` // "difference"
	Item string `json:"item,omitempty"`
	verify.Result
}

// Summary is the outcome as JSON.
type Summary struct {
	Type    string   `json:"type"` // "summary"
	Outcome outcome  `json:"outcome"`
	Open    []string `json:"open"` // what was not decided or not compared, and what helps
	*verify.Summary
	Entries    int      `json:"parkedEntries"` // in the state table, contested targets among them
	Examples   []open   `json:"undecidedExamples"`
	NotJudged  []string `json:"rulesNotLive"`
	OnlyRules  []string `json:"onlyRules,omitempty"` // of --rule
	Sample     float64  `json:"sample,omitempty"`    // the share that was judged, if not all was
	SampleSeed *uint64  `json:"sampleSeed,omitempty"`
	ReadUnits  float64  `json:"readUnits"`
	report.Seen
}

// open is an undecided difference as JSON.
type open struct {
	Why       string     `json:"why"`
	Rule      string     `json:"rule"`
	Kind      drift.Kind `json:"kind"`
	Item      string     `json:"item,omitempty"`
	Group     string     `json:"group,omitempty"`
	Attribute string     `json:"attribute,omitempty"`
}

// verification writes what is found: as JSON at once, as a table at the end.
type verification struct {
	*output.Output
	options       Options
	table         *output.Columns
	more          int64    // found, and not printed
	waiting       []string // rules that are not judged
	leases        followed.Watch
	parkedEntries int // in the state table
	streamless    bool
	scans         Scans
	seen          report.Sightings
}

// headRows is how many rows a table has that nothing was found for.
const headRows = 1

func newVerification(out *output.Output, options Options) *verification {
	head := output.NewColumns("", "RULE", "WHAT", "ITEM", "ATTRIBUTE", "EXPECTED", "FOUND", "")
	return &verification{Output: out, options: options, table: head}
}

func (r *verification) found(f verify.Result) error {
	if r.JSON {
		r.PrintJSONLine(Finding{"difference", f.Item.String(), f})
		return r.Failed
	}
	if r.options.Limit > 0 && len(r.table.Rows)-headRows >= r.options.Limit {
		r.more++
		return nil
	}
	became := ""
	switch {
	case f.Status == verify.Listed && f.Why == "":
		became = "no drift: it stays"
	case f.Status != verify.Drifted:
		became = strings.TrimSuffix(string(f.Status)+": "+f.Why, ": ")
	}
	r.table.Add(f.Rule, string(f.What)+" "+string(f.Kind), placeOf(f.Finding), output.Dash(f.Attribute), output.Dash(f.Expected),
		output.Dash(f.Found), became)
	return nil
}

// placeOf is the item's key, or the group of a finding that is not about an item.
func placeOf(f drift.Finding) string { return cmp.Or(f.Item.String(), f.Group) }

func (r *verification) facts(s *verify.Summary) facts {
	return facts{drift: s.Drift(), undecided: s.Undecided, parked: s.Parked, waiting: r.waiting, unfollowed: r.leases.Unfollowed()}
}

func (r *verification) end(s *verify.Summary) {
	if r.JSON {
		r.PrintJSONLine(r.result(s))
		return
	}
	r.differences()
	r.PrintOutcome(r.colour(s), r.summary(s))
	r.PrintText(r.seen.Text())
	if r.sampled() && len(r.seen.Targets) > 0 {
		r.PrintText("the sources and targets are those of the sample\n")
	}
}

// sampled reports whether not all is judged.
func (r *verification) sampled() bool { return r.options.share < 1 }

func (r *verification) result(s *verify.Summary) Summary {
	became := r.facts(s)
	result := Summary{
		Type: "summary", Outcome: became.outcome(), Open: became.open(), Summary: s, Entries: r.parkedEntries, Examples: []open{},
		NotJudged: append([]string{}, r.waiting...), OnlyRules: r.options.Rules, ReadUnits: r.scans.ReadUnits(), Seen: r.seen.Report(),
	}
	if r.sampled() {
		result.Sample, result.SampleSeed = r.options.share, &r.options.SampleSeed
	}
	for _, e := range s.Examples {
		result.Examples = append(result.Examples, open{e.Why, e.Rule, e.Kind, e.Item.String(), e.Group, e.Attribute})
	}
	return result
}

// colour is that of a verification's outcome: clean is green only without a warning.
func (r *verification) colour(s *verify.Summary) string {
	switch outcome := r.facts(s).outcome(); {
	case outcome == outcomeDrift:
		return progress.Red
	case outcome == OutcomeUndecided, len(r.seen.Warnings(true)) > 0:
		return progress.Yellow
	}
	return progress.Green
}

// differences writes the table, if there is anything in it. With JSON every line is out already.
func (r *verification) differences() {
	if len(r.table.Rows) == headRows {
		return
	}
	r.PrintText(r.table.Text())
	if r.more > 0 {
		r.Print("... %s more: --limit 0 or --json prints all\n", printable.Grouped(r.more))
	}
	r.PrintText("\n")
}

func (r *verification) summary(s *verify.Summary) string {
	var b strings.Builder
	fmt.Fprintf(&b, "looked at %s and %s of the state table", printable.Counted(s.Items, "item"), printable.Counted(s.Rows, "row"))
	if r.sampled() {
		fmt.Fprintf(&b, ", judged a sample (--sample-seed %d)", r.options.SampleSeed)
	}
	fmt.Fprintf(&b, "; %s read units\n", printable.Rounded(r.scans.ReadUnits()))
	became := r.facts(s)
	switch {
	case s.All > 0:
		var kinds []string
		for _, kind := range slices.Sorted(maps.Keys(s.Found)) {
			kinds = append(kinds, printable.Grouped(s.Found[kind])+" "+string(kind))
		}
		fmt.Fprintf(&b, "%s: %s\n", printable.Counted(s.All, "difference"), strings.Join(kinds, ", "))
	case became.outcome() == OutcomeUndecided:
		b.WriteString("undecided: whether everything derived is right could not be told\n")
	default:
		b.WriteString("no drift" + r.within() + "\n")
	}
	switch {
	case s.Repaired+s.Unrepaired > 0:
		fmt.Fprintf(&b, "%s repaired, %s not\n", printable.Grouped(s.Repaired), printable.Grouped(s.Unrepaired))
	case s.All > 0:
		fmt.Fprintf(&b, "`dynamill verify --repair` mends them, for about %s write units\n", printable.Rounded(s.WriteUnits))
	}
	b.WriteString(r.orphans(s))
	for _, line := range became.open() {
		b.WriteString(printable.Text(line) + "\n")
	}
	if r.parkedEntries > 0 && s.Parked == 0 {
		fmt.Fprintf(&b, "%s parked or contested, which is not drift: see `dynamill parked list`\n", printable.Grouped(r.parkedEntries))
	}
	b.WriteString(openExamples(s))
	if len(s.Undecided) > 0 && s.Blind {
		b.WriteString("there is no lease table, as where a Lambda function follows the stream\n")
	}
	if r.streamless && s.All > 0 {
		b.WriteString("the table has no stream: whether a difference would still have been corrected could not be told\n")
	}
	return b.String()
}

// orphans says how many items are listed that are no drift, and what becomes of them.
func (r *verification) orphans(s *verify.Summary) string {
	number := printable.Counted(s.Listed, "orphan")
	switch {
	case s.Listed == 0 && r.options.DryRun:
		return "no orphan would be deleted\n"
	case s.Listed == 0:
		return ""
	case r.options.DryRun:
		return number + " would be deleted by `dynamill verify --delete-orphans`; nothing was deleted\n"
	case r.options.DeleteOrphans:
		return fmt.Sprintf("%s: %s deleted, %s not\n", number, printable.Grouped(s.Deleted), printable.Grouped(s.Listed-s.Deleted))
	}
	return number + ", which is no drift: each has no parent, and nothing tells that it was deleted; " +
		"`dynamill verify --delete-orphans` deletes them\n"
}

// within says what a verification of not everything was confined to.
func (r *verification) within() string {
	text := ""
	if r.sampled() {
		text = " in the sample of " + strconv.FormatFloat(100*r.options.share, 'g', -1, 64) + "%"
	}
	if len(r.options.Rules) > 0 {
		text += " of " + printable.Text(strings.Join(r.options.Rules, ", "))
	}
	return text
}

func openExamples(s *verify.Summary) string {
	if len(s.Examples) == 0 {
		return ""
	}
	table := output.Columns{Indent: "  "}
	for _, e := range s.Examples {
		table.Add(e.Rule, string(e.Kind), placeOf(e.Finding), output.Dash(e.Attribute), e.Why)
	}
	return "among what was not decided:\n" + table.Text()
}

type outcome string

// The outcomes that there are.
const (
	outcomeClean     outcome = "clean"     // everything that was asked for was compared, and nothing drifts
	outcomeDrift     outcome = "drift"     // at least one difference is proven, and is left
	OutcomeUndecided outcome = "undecided" // no drift is proven, and something was not compared or not decided
)

type facts struct {
	drift      int64            // proven, and not repaired
	undecided  map[string]int64 // differences that could not be judged, by the reason
	parked     int64            // differences that are left out because something is parked
	waiting    []string         // rules that are not judged
	unfollowed bool             // no process applies the stream
}

// outcome decides. Proven drift wins, even if other differences are undecided.
func (v facts) outcome() outcome {
	switch {
	case v.drift > 0:
		return outcomeDrift
	case len(v.undecided) > 0 || v.parked > 0 || len(v.waiting) > 0:
		return OutcomeUndecided
	}
	return outcomeClean
}

// open names everything that was not decided, and the remedy of each.
func (v facts) open() []string {
	lines := []string{}
	for _, why := range slices.Sorted(maps.Keys(v.undecided)) {
		remedy := verify.Remedy(why)
		if why == verify.WhyRecords && v.unfollowed {
			remedy = followed.NoFollower
		}
		lines = append(lines, fmt.Sprintf("%s not decided: %s; %s", printable.Grouped(v.undecided[why]), why, remedy))
	}
	if v.unfollowed && len(v.undecided) > 0 && v.undecided[verify.WhyRecords] == 0 {
		lines = append(lines, followed.NoFollower)
	}
	if v.parked > 0 {
		lines = append(lines, fmt.Sprintf("%s left out, because their items are parked: see `dynamill parked list`", printable.Grouped(v.parked)))
	}
	if len(v.waiting) > 0 {
		lines = append(lines, fmt.Sprintf("not judged, or not in full, because they are still being brought into force or taken back: %s; "+
			"let `dynamill run` or `dynamill replay` finish that", strings.Join(v.waiting, ", ")))
	}
	return lines
}

// failure is the ending of a verification; nil if everything is right.
func (v facts) failure(repair bool) error {
	switch outcome := v.outcome(); {
	case outcome == outcomeDrift && repair:
		return &ending.Failure{Code: ending.ExitDrift, Err: fmt.Errorf("drift left: %s", printable.Counted(v.drift, "difference"))}
	case outcome == outcomeDrift:
		return &ending.Failure{Code: ending.ExitDrift, Err: fmt.Errorf("drift found: %s", printable.Counted(v.drift, "difference"))}
	case outcome == OutcomeUndecided:
		return &ending.Failure{Code: ending.ExitUndecided, Err: fmt.Errorf("undecided: %s", strings.Join(v.open(), "; "))}
	}
	return nil
}

// judgedRules are the rules of a list that --rule selects.
func judgedRules(names, selected []string) []string {
	names = slices.Compact(slices.Sorted(slices.Values(names))) // a changed rule waits, and so does what it was
	if len(selected) == 0 {
		return names
	}
	return slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(selected, name) })
}
