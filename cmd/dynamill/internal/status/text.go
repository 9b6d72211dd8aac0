package status

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/output"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/internal/projections/inspect"
	"github.com/dynamill/dynamill/internal/sighting"
)

//go:embed status.txt
var textFile string

var textForm = template.Must(template.New("status").Funcs(template.FuncMap{
	"text": printable.Text, "grouped": printable.Grouped[int],
	"dash":          func(text string) string { return printable.Text(output.Dash(text)) },
	"notRegistered": func() string { return notRegistered },
	"line":          (*Report).line,
	"registered":    func(s *Report) bool { return s.registered },
	"seeding":       (*Report).seedingText,
	"generation":    ruleStatus.generationText,
	"owner":         Shard.owner,
	"lag":           Shard.lag,
	"words":         func(m recordedMissing) string { return m.text },
	"remedy":        caseRemedy,
}).Parse(textFile))

// Text is the status for people: the first line, the summary, and the sections.
func (s *Report) Text() string {
	var b strings.Builder
	if err := textForm.Execute(&b, s); err != nil {
		panic(err) // the form does not fit the type: no report could be shown
	}
	return output.AlignTabs(b.String())
}

// line is the first line: how the table is followed.
func (s *Report) line() string { return s.Table + ": " + s.followed.Line() }

// seedingText says how far seeding is, what that means, and what is to be done; "" if nothing is seeded.
func (s *Report) seedingText() string {
	if s.seeded || s.registeredRules() == 0 {
		return ""
	}
	meaning := "a computed value may be the former one until then: " + remedyRun
	if slices.ContainsFunc(s.Rules, func(r ruleStatus) bool { return !r.live && r.State != notRegistered }) {
		meaning = "a rule that is not live " + seedingNote
	}
	return fmt.Sprintf("\nseeding\n  %s\n  %s\n", seedingLine(s.Seeding), meaning)
}

// seedingLine says how far a scan is.
func seedingLine(s *inspect.Seeding) string {
	if s == nil {
		return "no place is saved yet: not begun, or at the first items"
	}
	of := fmt.Sprintf("level %d", s.Level)
	if s.Level < 0 {
		of = "all levels"
	}
	switch s.Phase {
	case "clean":
		return fmt.Sprintf("taking back what former rules wrote on items: %s so far", printable.Counted(s.Items, "item"))
	case "sweep":
		return fmt.Sprintf("taking back what former rules kept in the state table: %s so far", printable.Counted(s.Items, "row"))
	}
	doing := map[string]string{"derive": "deriving what the items ask for", "show": "writing computed values",
		"tally": "counting the items by stream position"}[s.Phase]
	return fmt.Sprintf("%s, for rules of %s: %s so far", cmp.Or(doing, printable.Text(s.Phase)), of, printable.Counted(s.Items, "item"))
}

// generationText says which generation of a rule items show, and whether another is counted.
func (r ruleStatus) generationText() string {
	shards := printable.Counted(int64(r.Shards), "shard")
	switch {
	case r.Generation == r.Shown:
		return fmt.Sprintf("items show generation %d, over %s", r.Shown, shards)
	case r.Shown == 0:
		return fmt.Sprintf("generation %d is counted, over %s so far", r.Generation, shards)
	}
	return fmt.Sprintf("generation %d is counted anew, over %s so far; items show generation %d until then: let `dynamill run` finish",
		r.Generation, shards, r.Shown)
}

// caseRemedy is what to do where the keys of a missing target differ in letter case; "" if none do.
func caseRemedy(rows []recordedMissing) string {
	if slices.ContainsFunc(rows, func(r recordedMissing) bool { return r.OtherCase != "" }) {
		return sighting.CaseRemedy
	}
	return ""
}

// owner names the process that reads the shard, and says if it seems dead.
func (s Shard) owner() string {
	if s.Silent {
		return printable.Text(s.Owner) + " (silent)"
	}
	return printable.Text(output.Dash(s.Owner))
}

// lag says how far behind a shard is. If the stream was not looked at, one without an owner may be
// less so than it seems: whether anything came after its newest record is not known.
func (s Shard) lag() string {
	if s.Lag == nil {
		return "-"
	}
	text := (time.Duration(*s.Lag) * time.Second).String()
	if s.Owner == "" && *s.Lag > 0 && !s.looked {
		return "at most " + text
	}
	return text
}
