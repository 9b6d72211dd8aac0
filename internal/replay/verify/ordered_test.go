package verify_test

import (
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/proof/oracle"
)

const orderedRules = `version: 1
table: { keys: [pk, sk] }
entities:
  Day:    { key: { pk: "DAY#${day}", sk: "METADATA" } }
  Month:  { key: { pk: "MONTH#${month}", sk: "METADATA" }, derived: true }
  Sample: { key: { pk: "DAY#${day}", sk: "SAMPLE#${time}" } }
rules:
  peak:   { max: cpu, of: Sample, as: Day.peak }
  recent: { last: 2, of: Sample, as: Day.recent, attributes: [cpu, time], order: time }
  newest: { last: [cpu as lastCpu, time as lastTime], of: Sample, to: Day, order: time }
  lowest: { first: [time as lowestTime], of: Sample, to: Month, by: month, order: cpu }
`

// TestWrongOrderIsFoundAndMended spoils member rows, what counts them, and what is shown of them.
func TestWrongOrderIsFoundAndMended(t *testing.T) {
	number, str := change.Number, change.String
	row := func(rule, sort string) (string, string) {
		return "member/" + oracle.RuleID(rule) + "/DAY#3%2FMETADATA", sort
	}
	newest, sort := row("recent", "s3 DAY#3/SAMPLE#3")
	oldest, oldSort := row("recent", "s1 DAY#3/SAMPLE#1")
	peak, peakSort := row("peak", "n15019 DAY#3/SAMPLE#2")
	shown := change.Map(map[string]change.Value{"cpu": number("77"), "time": str("3")})
	for name, s := range map[string]spoilt{
		"another peak":                   {app, "DAY#3", "METADATA", set("peak", number("7"))},
		"a peak as text":                 {app, "DAY#3", "METADATA", set("peak", str("9"))},
		"no peak":                        {app, "DAY#3", "METADATA", without("peak")},
		"a peak over nothing":            {app, "DAY#0", "METADATA", set("peak", number("5"))},
		"no list":                        {app, "DAY#3", "METADATA", without("recent")},
		"a list over nothing":            {app, "DAY#0", "METADATA", set("recent", change.List(nil))},
		"a list of one":                  {app, "DAY#3", "METADATA", set("recent", change.List([]change.Value{shown}))},
		"one of two attributes":          {app, "DAY#3", "METADATA", set("lastCpu", number("5"))},
		"without one of two":             {app, "DAY#3", "METADATA", without("lastTime")},
		"a derived item's":               {app, "MONTH#m", "METADATA", set("lowestTime", str("9"))},
		"a member row shows otherwise":   {state, newest, sort, set("shown", shown)},
		"a member row shows nothing":     {state, newest, sort, without("shown")},
		"a member row that is not shown": {state, oldest, oldSort, set("shown", shown)},
		"no member row":                  {state, newest, sort, under("gone", "gone")},
		"no row of the peak":             {state, peak, peakSort, under("gone", "gone")},
		"a member row too many": {state, newest, sort, func(w *world, _ change.Item) {
			w.put("app-dynamill", change.Item{"pk": str(newest), "sk": str("s9 DAY#3/SAMPLE#9"), "shown": shown})
		}},
		"a member row of no item": {state, newest, sort, func(w *world, _ change.Item) {
			w.put("app-dynamill", change.Item{"pk": str(newest), "sk": str("x"), "shown": shown})
		}},
		"a member row at another place": {state, newest, sort, under(newest, "s0 DAY#3/SAMPLE#3")},
		"another number of members":     {state, "sum/" + oracle.RuleID("peak") + "/DAY#3%2FMETADATA/0", "a", set("members", number("7"))},
		"another value":                 {state, "sum/" + oracle.RuleID("peak") + "/DAY#3%2FMETADATA/0", "a", set("value", number("7"))},
		"no count of operations":        {state, "sum/" + oracle.RuleID("newest") + "/DAY#3%2FMETADATA/0", "a", without("ops")},
		"an entry without effects": {state, "i/DAY#3/SAMPLE#3", "", func(_ *world, row change.Item) {
			hasEffects(row, nil)
		}},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			w := worldOf(t, "ordered", orderedRules)
			for _, it := range []change.Item{
				texts("pk", "DAY#0", "sk", "METADATA"), texts("pk", "DAY#3", "sk", "METADATA"),
				sample("3", "1", "2"), sample("3", "2", "9"), sample("3", "3", "4"),
			} {
				it["month"] = str("m")
				w.put("app", it)
			}
			w.follow()
			w.expectRight("before")
			w.damage(s)
			w.lose()
			found, _ := w.verify(false)
			if len(found) == 0 {
				t.Error("nothing was found")
			}
			for _, f := range found {
				t.Log(text(f))
			}
			again, _ := w.verify(true)
			w.expectMended(again)
			w.follow()
			w.expectRight("after the repair")
			w.delete("app", sample("3", "3", ""))
			w.put("app", sample("3", "4", "1"))
			w.follow()
			w.expectRight("after it has gone on")
		}))
	}
}

// TestMemberRowIsNotMendedAheadOfItsEntry changes the item after its row was judged: the row then goes with the record of the change.
func TestMemberRowIsNotMendedAheadOfItsEntry(t *testing.T) {
	inBubble(func(t *testing.T) {
		w := worldOf(t, "ordered", orderedRules)
		w.put("app", texts("pk", "DAY#3", "sk", "METADATA"))
		w.put("app", sample("3", "1", "2"))
		w.follow()
		partition := "member/" + oracle.RuleID("recent") + "/DAY#3%2FMETADATA"
		w.damage(spoilt{state, partition, "s1 DAY#3/SAMPLE#1", under("gone", "gone")})
		w.lose()
		a := w.audit()
		suspect := drift.Suspect{Kind: "member row", Rule: oracle.RuleID("recent"), Group: "DAY#3/METADATA",
			Item: change.Key{Partition: "DAY#3", Sort: "SAMPLE#1"}, Sort: "s1 DAY#3/SAMPLE#1"}
		readings, err := a.Read(w.ctx, []drift.Suspect{suspect})
		w.must(err)
		if len(readings[0].Findings) != 1 {
			t.Fatalf("found %v", readings[0].Findings)
		}
		w.put("app", sample("3", "1", "7"))
		before := len(w.scan(state))
		if done, err := a.Mend(w.ctx, readings[0]); !done || err != nil {
			t.Errorf("mended: %v, %v", done, err)
		}
		if after := len(w.scan(state)); after != before {
			t.Errorf("the row was put by the item: %d rows, had %d", after, before)
		}
		w.follow()
		w.expectRight("in the end")
	})(t)
}
