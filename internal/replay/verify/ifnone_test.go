package verify_test

import (
	"testing"

	"github.com/dynamill/dynamill/change"
)

const zeroRules = `version: 1
table: { keys: [pk, sk] }
entities:
  Day:    { key: { pk: "DAY#${day}", sk: "METADATA" } }
  Sample: { key: { pk: "DAY#${day}", sk: "SAMPLE#${time}" } }
rules:
  samples: { count: Sample, as: Day.samples }
  total:   { sum: cpu, of: Sample, as: Day.total, if_none: absent }
`

// TestZeroIsToldFromNothing spoils totals over nothing, over amounts that cancel each other, and over one sample.
func TestZeroIsToldFromNothing(t *testing.T) {
	for name, s := range map[string]spoilt{
		"nothing instead of a count of 0":            {app, "DAY#0", "METADATA", without("samples")},
		"a count over nothing":                       {app, "DAY#0", "METADATA", set("samples", change.Number("1"))},
		"0 instead of nothing":                       {app, "DAY#0", "METADATA", set("total", change.Number("0"))},
		"0 instead of nothing, of a sum of samples":  {app, "DAY#2", "METADATA", set("total", change.Number("0"))},
		"0 instead of a number":                      {app, "DAY#1", "METADATA", set("total", change.Number("0"))},
		"nothing instead of a number that is hidden": {app, "DAY#1", "METADATA", without("total")},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			w := worldOf(t, "zero", zeroRules)
			for _, it := range []change.Item{
				texts("pk", "DAY#0", "sk", "METADATA"), texts("pk", "DAY#1", "sk", "METADATA"), texts("pk", "DAY#2", "sk", "METADATA"),
				sample("1", "1", "5"), sample("2", "1", "3"), sample("2", "2", "-3"),
			} {
				w.put("app", it)
			}
			w.follow()
			w.expectRight("before")
			w.damage(s)
			w.lose()
			if found, _ := w.verify(false); len(found) != 1 {
				t.Errorf("%d findings, want 1: %v", len(found), found)
			}
			again, _ := w.verify(true)
			w.expectMended(again)
			w.follow()
			w.expectRight("after the repair")
		}))
	}
}
