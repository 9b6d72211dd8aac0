package verify_test

import (
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/proof/oracle"
)

const averageRules = `version: 1
table: { keys: [pk, sk] }
entities:
  Day:    { key: { pk: "DAY#${day}", sk: "METADATA" } }
  Sample: { key: { pk: "DAY#${day}", sk: "SAMPLE#${time}" } }
rules:
  cpu: { average: cpu, of: Sample, as: Day.cpu, write_shards: 4 }
`

// TestWrongAverageIsFoundAndMended spoils what averages are kept in and where they are shown: of a day
// with three samples, of one whose only sample is 0, and of one without samples.
func TestWrongAverageIsFoundAndMended(t *testing.T) {
	number, str := change.Number, change.String
	accumulator := "sum/" + oracle.RuleID("cpu") + "/DAY#3"
	for name, s := range map[string]spoilt{
		"another value":             {app, "DAY#3", "METADATA", set("cpu", number("7"))},
		"fewer digits":              {app, "DAY#3", "METADATA", set("cpu", number("0.66"))},
		"no value":                  {app, "DAY#3", "METADATA", without("cpu")},
		"nothing instead of 0":      {app, "DAY#1", "METADATA", without("cpu")},
		"0 instead of nothing":      {app, "DAY#0", "METADATA", set("cpu", number("0"))},
		"a number over nothing":     {app, "DAY#0", "METADATA", set("cpu", number("5"))},
		"a text":                    {app, "DAY#3", "METADATA", set("cpu", str("0.7"))},
		"another sum":               {state, accumulator, "", set("value", number("3"))},
		"another number of members": {state, accumulator, "", set("members", number("2"))},
		"both": {state, accumulator, "", func(_ *world, row change.Item) {
			row["value"], row["members"] = number("4"), number("6") // the mean stays
		}},
		"members as text":       {state, accumulator, "", set("members", str("3"))},
		"no members":            {state, accumulator, "", without("members")},
		"no accumulator":        {state, accumulator, "", under("gone", "gone")},
		"no accumulator of a 0": {state, "sum/" + oracle.RuleID("cpu") + "/DAY#1", "", under("gone", "gone")},
		"an entry without the effect of a 0": {state, "i/DAY#1/SAMPLE#1", "", func(_ *world, row change.Item) {
			hasEffects(row, nil)
		}},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			w := worldOf(t, "average", averageRules)
			for _, it := range []change.Item{
				texts("pk", "DAY#0", "sk", "METADATA"), texts("pk", "DAY#1", "sk", "METADATA"), texts("pk", "DAY#3", "sk", "METADATA"),
				sample("1", "1", "0"), sample("3", "1", "0"), sample("3", "2", "1"), sample("3", "3", "1"),
			} {
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
			w.put("app", sample("0", "1", "2"))
			w.delete("app", sample("1", "1", ""))
			w.put("app", sample("3", "1", "3"))
			w.follow()
			w.expectRight("after it has gone on")
		}))
	}
}

func sample(day, time, cpu string) change.Item {
	it := texts("pk", "DAY#"+day, "sk", "SAMPLE#"+time)
	it["cpu"] = change.Number(cpu)
	return it
}
