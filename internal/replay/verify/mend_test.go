package verify_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/proof/population"
	"github.com/dynamill/dynamill/internal/replay/verify"
)

const voteRules = `version: 1
table: { keys: [pk, sk] }
entities:
  Vote:  { key: { pk: "VOTE#${voteId}", sk: "META" } }
  Voter: { key: { pk: "USER#${userId}", sk: "VOTER" } }
rules:
  voters: { mirror: Vote, as: Voter, attributes: [color], by: userId }
`

func worldOf(t *testing.T, name, file string) *world {
	t.Helper()
	p, err := population.New(name, file, projections.Kinds)
	if err != nil {
		t.Fatal(err)
	}
	return newWorld(t, p, 1)
}

func membership(user, group string) change.Item {
	return texts("pk", "USER#"+user, "sk", "GROUP#"+group, "role", "m", "joinedAt", "x")
}

func (w *world) expectMended(found []verify.Result) {
	w.t.Helper()
	if len(found) == 0 {
		w.t.Error("nothing was found")
	}
	for _, f := range found {
		if f.Status != verify.Repaired {
			w.t.Errorf("after the repair: %s", text(f))
		}
	}
}

func TestAMissingClaimIsFoundAmongMoreThanASuspectNames(t *testing.T) {
	w := worldOf(t, "votes", voteRules)
	for i := range 1200 {
		w.put("app", texts("pk", fmt.Sprintf("VOTE#%05d", i), "sk", "META", "userId", "1", "color", "red"))
	}
	w.follow()
	for _, row := range w.scan("app-dynamill") {
		if strings.HasPrefix(row["pk"].Text(), "claims/") {
			var all []string
			for _, m := range row["sources"].List() {
				all = append(all, m.Text())
			}
			slices.Sort(all)
			row["sources"] = change.Set(change.KindStringSet, all[:len(all)-1])
			w.put("app-dynamill", row)
		}
	}
	found, _ := w.verify(true)
	w.expectMended(found)
	w.expectRight("after the repair")
}

func TestAccumulatorsWithMoreSuffixesThanATransactionHoldsAreMended(t *testing.T) {
	for _, shards := range []int{1, 99, 100, 128, 256} {
		t.Run(fmt.Sprint(shards), inBubble(func(t *testing.T) {
			w := worldOf(t, "club", strings.Replace(clubRules, "write_shards: 4", fmt.Sprint("write_shards: ", shards), 1))
			w.put("app", membership("1", "1"))
			w.put("app", texts("pk", "GROUP#1", "sk", "METADATA"))
			w.follow()
			for _, row := range w.scan("app-dynamill") {
				if row["sk"].Text() == "a" {
					row["value"] = change.Number("7")
					w.put("app-dynamill", row)
				}
			}
			found, _ := w.verify(true)
			w.expectMended(found)
			w.follow()
			w.expectRight(fmt.Sprintf("with %d suffixes", shards))
		}))
	}
}

// restored makes a table whose state table was restored to an earlier moment: what
// is displayed carries a higher count than the accumulators.
func restored(t *testing.T, file string, target change.Item) *world {
	w := worldOf(t, "club", file)
	w.put("app", target)
	w.put("app", membership("0", "1"))
	w.follow()
	before := w.scan("app-dynamill")
	for i := range 3 {
		w.put("app", membership(fmt.Sprint("x", i), "1"))
		w.follow()
		w.delete("app", membership(fmt.Sprint("x", i), "1"))
		w.follow()
	}
	for _, row := range w.scan("app-dynamill") {
		w.delete("app-dynamill", row)
	}
	for _, row := range before {
		w.put("app-dynamill", row)
	}
	return w
}

func TestACountThatIsShownAheadOfItsAccumulatorsIsFoundAndMended(t *testing.T) {
	unique := strings.Replace(clubRules, `sk: "METADATA" } }`, `sk: "METADATA" }, unique: groupId }`, 1)
	for name, file := range map[string]string{"by key": clubRules, "by a unique value": unique} {
		for _, later := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, later %v", name, later), inBubble(func(t *testing.T) {
				w := restored(t, file, texts("pk", "GROUP#1", "sk", "METADATA"))
				if later { // with what it freezes
					w.put("app", membership("new", "1"))
					w.follow()
				}
				found, _ := w.verify(true)
				w.expectMended(found)
				if !later {
					w.put("app", membership("new", "1"))
				}
				w.follow()
				w.expectRight("after one more member")
			}))
		}
	}
}
