package verify_test

import (
	"testing"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/proof/oracle"
)

const derivedRules = `version: 1
table: { keys: [pk, sk] }
entities:
  Day:    { key: { pk: "DAY#${day}", sk: "METADATA" }, match: { kind: day }, derived: true, expire: 90d, expire_attribute: until }
  Sample: { key: { pk: "DAY#${day}", sk: "SAMPLE#${time}" } }
rules:
  total:   { sum: cpu, of: Sample, as: Day.total }
  samples: { count: Sample, as: Day.samples }
`

// TestDerivedItemIsFoundAndMended spoils an item with three samples, one with a sample of which a rule has no amount, and a day
// without samples.
func TestDerivedItemIsFoundAndMended(t *testing.T) {
	number, str := change.Number, change.String
	gone := func(_ *world, item change.Item) { item["pk"] = str("GONE#1") }
	for name, s := range map[string]spoilt{
		"another value":                       {app, "DAY#3", "METADATA", set("samples", number("7"))},
		"no value":                            {app, "DAY#3", "METADATA", without("total")},
		"no item":                             {app, "DAY#3", "METADATA", gone},
		"no item, where one rule has nothing": {app, "DAY#1", "METADATA", gone},
		"another entity":                      {app, "DAY#3", "METADATA", set("kind", str("night"))},
		"no entity":                           {app, "DAY#3", "METADATA", without("kind")},
		"no mark":                             {app, "DAY#1", "METADATA", without("_dm")},
		"an item without samples": {app, "DAY#3", "METADATA", func(w *world, item change.Item) {
			w.put("app", texts("pk", "DAY#9", "sk", "METADATA", "kind", "day"))
		}},
		"another sum": {state, "sum/" + oracle.RuleID("total") + "/DAY#3%2FMETADATA/0", "a", set("value", number("9"))},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			w := worldOf(t, "derived", derivedRules)
			for _, it := range []change.Item{
				texts("pk", "DAY#1", "sk", "SAMPLE#1"), sample("3", "1", "0"), sample("3", "2", "1"), sample("3", "3", "1"),
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
			again, _ := w.verify(true)
			w.expectMended(again)
			w.follow()
			w.expectRight("after the repair")
		}))
	}
}

// TestPutOffRollupOfAnotherRuleIsNoDrift has an item that two rules make lose its only source, which one of them shows, while that rule's
// roll-up is put off.
func TestPutOffRollupOfAnotherRuleIsNoDrift(t *testing.T) {
	inBubble(putOffRollup)(t)
}

func putOffRollup(t *testing.T) {
	w := worldOf(t, "tags", `version: 1
table: { keys: [pk, sk] }
entities:
  Comment: { key: { pk: "POST#${postId}", sk: "COMMENT#${commentId}" } }
  Tag:     { key: { pk: "TAG#${tag}", sk: "METADATA" }, derived: true }
rules:
  liked: { count: Comment, as: Tag.liked, by: tag, where: likes > 0 }
  best:  { last: [commentId as best], of: Comment, to: Tag, by: tag, order: commentId }
`)
	w.config.DisplayEvery = time.Minute
	e := w.engine()
	w.must(e.Seed(w.ctx, nil))
	one, two := texts("pk", "POST#1", "sk", "COMMENT#1", "tag", "x"), texts("pk", "POST#1", "sk", "COMMENT#2", "tag", "x")
	for _, write := range []func(){func() { w.put(app, one) }, func() { w.put(app, two) }, func() { w.delete(app, one); w.delete(app, two) }} {
		write()
		w.read(e)
	}
	if tags := len(w.scan(app)); tags != 1 {
		t.Fatalf("%d items are there: the roll-up was not put off", tags)
	}
	found, summary := w.verify(false)
	if len(found) > 0 || len(summary.Undecided) == 0 {
		t.Errorf("drift: %v, undecided: %v", found, summary.Undecided)
	}
	_, err := e.WorkTasks(w.ctx)
	w.must(err)
	w.expectRight("after the roll-up")
}
