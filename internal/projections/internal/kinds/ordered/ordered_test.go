package ordered_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/internal/proof/kindtest"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/rules/rulediff"
)

const file = `
version: 1
table: { keys: [pk, sk] }
entities:
  Sample: { key: { pk: "SERVER#${server}", sk: "SAMPLE#${at}" } }
  Server: { key: { pk: "SERVER#${server}", sk: "METADATA" } }
  Tag:    { key: { pk: "TAG#${tag}", sk: "METADATA" } }
  Day:    { key: { pk: "DAY#${day}", sk: "SAMPLES" }, derived: true }
  Place:  { key: { pk: "PLACE#${place}", sk: "SAMPLES" }, derived: true }
rules:
  lowest:    { min: cpu, of: Sample, as: Server.lowest }
  recent:    { last: 3, of: Sample, as: Server.recent, attributes: [cpu, text], order: at }
  oldest:    { first: [cpu as firstCpu, text as firstText], of: Sample, to: Server, order: at }
  tag-peak:  { max: cpu, of: Sample, each: tags as tag, as: Tag.peak }
  part-peak: { max: part, of: Sample, each: parts as part, as: Server.partPeak }
  samples:   { count: Sample, as: Day.samples, by: day, write_shards: 3 }
  day-peak:  { max: cpu, of: Sample, as: Day.peak, by: day }
  newest:    { last: [text as newest, cpu as cpu], of: Sample, to: Place, by: place, order: at }
`

// TestOrderedRulesSayWhatTheyCostAndDo has a rule of two on a derived entity, whose values have four rows, and one alone on another.
func TestOrderedRulesSayWhatTheyCostAndDo(t *testing.T) {
	const change, rollUp = "2 + 2 + 2 WU per change, 2 WU more if the order changes", " + roll-up once per batch and target"
	read := func(entity, shown string) string {
		return "reads every Sample, then shows " + shown + " on every " + entity + "; the present values stay until then"
	}
	made := func(entity, shown string) string {
		return "reads every Sample, then makes " + entity + " items that show " + shown +
			", and deletes every other item that stands at such a key"
	}
	s := kindtest.LoadText(t, file)
	for rule, want := range map[string]struct {
		cost, replays, needs string
	}{
		"lowest":   {change + rollUp, read("Server", "lowest"), ""},
		"recent":   {change + rollUp, read("Server", "recent"), ""},
		"oldest":   {change + rollUp, read("Server", "firstCpu, firstText"), ""},
		"tag-peak": {"2 WU per change and 2 + 2 WU per element that changes, 2 WU more if its order changes" + rollUp, read("Tag", "peak"), ""},
		"part-peak": {"2 + 2 WU per change and 2 WU per element that changes, 2 WU more if its order changes" + rollUp,
			read("Server", "partPeak"), ""},
		"day-peak": {change + rollUp + ", 10 WU per Day that comes or goes", made("Day", "peak"),
			"dynamodb:PutItem dynamodb:DeleteItem"},
		"newest": {change + rollUp + ", 4 WU per Place that comes or goes", made("Place", "newest, cpu"),
			"dynamodb:PutItem dynamodb:DeleteItem"},
	} {
		form := kindtest.Rule(t, s, rule).Form
		if diff := cmp.Diff(rules.Cost{WriteUnits: 6, Text: want.cost}, form.Cost()); diff != "" {
			t.Errorf("what %s costs (-want +got):\n%s", rule, diff)
		}
		if got := form.Replays(); got != want.replays {
			t.Errorf("a replay of %s %q, want %q", rule, got, want.replays)
		}
		var actions []string
		for _, need := range form.Needs() {
			actions = append(actions, need.Action)
		}
		if got := strings.Join(actions, " "); got != want.needs {
			t.Errorf("%s needs %q, want %q", rule, got, want.needs)
		}
	}
}

func TestWhatOrderedRulesMeanDiffers(t *testing.T) {
	load := func(rule, text string) *rules.Rule {
		whole := strings.Split(file, "\n")
		for i, line := range whole {
			if strings.HasPrefix(line, "  "+rule+":") {
				whole[i] = "  " + rule + ": { " + text + " }"
			}
		}
		return kindtest.Rule(t, kindtest.LoadText(t, strings.Join(whole, "\n")), rule)
	}
	s := kindtest.LoadText(t, file)
	for _, test := range []struct {
		rule, text string
		want       []rulediff.FieldChange
	}{
		{"recent", "last: 3, of: Sample, as: Server.recent, attributes: [cpu, text], order: at", nil},
		{"recent", "last: 3, of: Sample, as: Server.recent, attributes: [text, cpu], order: at", nil},
		{"recent", "last: 4, of: Sample, as: Server.recent, attributes: [cpu, text], order: at",
			[]rulediff.FieldChange{{Field: "last", Old: "3", New: "4"}}},
		{"recent", "last: 3, of: Sample, as: Server.recent, attributes: [cpu, text], order: cpu",
			[]rulediff.FieldChange{{Field: "order", Old: "at", New: "cpu"}}},
		{"recent", "last: 3, of: Sample, as: Server.recent, attributes: [cpu, text as body], order: at",
			[]rulediff.FieldChange{{Field: "attributes", Old: "cpu, text", New: "cpu, text as body"}}},
		{"recent", "first: 3, of: Sample, as: Server.recent, attributes: [cpu, text], order: at",
			[]rulediff.FieldChange{{Field: "kind", Old: "last", New: "first"}, {Field: "last", Old: "3"}, {Field: "first", New: "3"}}},
		{"oldest", "first: [cpu as firstCpu, sk as firstText], of: Sample, to: Server, order: at",
			[]rulediff.FieldChange{{Field: "attributes", Old: "cpu as firstCpu, text as firstText", New: "cpu as firstCpu, sk as firstText"}}},
		{"lowest", "min: cpu + 1, of: Sample, as: Server.lowest", []rulediff.FieldChange{{Field: "min", Old: "cpu", New: "cpu + 1"}}},
		{"lowest", "max: cpu, of: Sample, as: Server.lowest", []rulediff.FieldChange{{Field: "kind", Old: "min", New: "max"}}},
	} {
		one, other := kindtest.Rule(t, s, test.rule), load(test.rule, test.text)
		if same := one.Fingerprint == other.Fingerprint; same != (test.want == nil) {
			t.Errorf("%s: the fingerprint is the same: %t", test.text, same)
		}
		if diff := cmp.Diff(test.want, rulediff.Compare(one, other)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.text, diff)
		}
	}
}
