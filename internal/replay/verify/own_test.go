package verify_test

import (
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/proof/oracle"
)

const indexRules = `version: 1
table: { keys: [pk, sk] }
entities:
  Post: { key: { pk: "POST#${postId}", sk: "METADATA" } }
rules:
  index: { set: { GSI1PK: "STATUS#${status}", GSI1SK: "${pad(likes, 4)}" }, of: Post, where: status != "draft" }
`

// TestWrongSetAttributesAreFoundAndMended spoils what a set rule wrote: of a post that has the attributes, of one that must not have
// them, and of one that the rule cannot read.
func TestWrongSetAttributesAreFoundAndMended(t *testing.T) {
	parked := oracle.RuleID("index") + "/POST#bad/METADATA"
	for name, s := range map[string]spoilt{
		"another value":                 {app, "POST#p", "METADATA", set("GSI1PK", change.String("STATUS#x"))},
		"a missing value":               {app, "POST#p", "METADATA", without("GSI1SK")},
		"a value of another type":       {app, "POST#p", "METADATA", set("GSI1SK", change.Number("7"))},
		"a surplus value":               {app, "POST#draft", "METADATA", set("GSI1PK", change.String("STATUS#draft"))},
		"a value that cannot be known":  {app, "POST#bad", "METADATA", set("GSI1SK", change.String("0000"))},
		"a parked record that is gone":  {state, "parked", parked, under("gone", "gone")},
		"a parked record of other code": {state, "parked", parked, set("code", change.String("number.division"))},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			w := worldOf(t, "index", indexRules)
			post := func(id, status string, likes change.Value) {
				it := texts("pk", "POST#"+id, "sk", "METADATA", "status", status)
				it["likes"] = likes
				w.put("app", it)
			}
			post("p", "published", change.Number("7"))
			post("draft", "draft", change.Number("1"))
			post("bad", "published", change.String("many"))
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
			post("p", "draft", change.Number("7"))
			post("draft", "published", change.Number("1"))
			post("bad", "published", change.Number("2"))
			w.follow()
			w.expectRight("after it has gone on")
		}))
	}
}
