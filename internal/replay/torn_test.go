package replay_test

import (
	"maps"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/replay"
)

// TestTornProgressRowHoldsUpNoReplay has another program write in the rows of a replay
// that was stopped. The next replay must come to its end, over every page.
func TestTornProgressRowHoldsUpNoReplay(t *testing.T) {
	text, number := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} },
		func(n string) types.AttributeValue { return &types.AttributeValueMemberN{Value: n} }
	for name, c := range map[string]struct {
		rows, attribute string
		value           types.AttributeValue // nil: the attribute goes
	}{
		"a run without its generation":         {"run", "generation", nil},
		"a run, its generation a number":       {"run", "generation", number("1")},
		"a run of no passes":                   {"run", "passes", nil},
		"a run of other passes":                {"run", "passes", text("nothing")},
		"pieces without a counter":             {"piece/", "counter", nil},
		"pieces, their counters texts":         {"piece/", "counter", text("3")},
		"pieces, their counters 0":             {"piece/", "counter", number("0")},
		"pieces, their counters beyond counts": {"piece/", "counter", number("1e30")},
		"pieces, their owners numbers":         {"piece/", "owner", number("1")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				source := newBook(4, 6)
				if err := r.stopAfter(6, r.process().config(source)); err == nil {
					t.Fatal("the replay was not stopped")
				}
				for _, row := range r.rows(c.rows) {
					row = maps.Clone(row)
					if row[c.attribute] = c.value; c.value == nil {
						delete(row, c.attribute)
					}
					r.overwrite(row)
				}
				if _, err := replay.Run(t.Context(), r.process().config(source)); err != nil {
					t.Fatal(err)
				}
				if got := r.times("rederive"); got[1]+got[2] != 24 {
					t.Errorf("of 24 pages so many were worked off so often: %v", got)
				}
			})
		})
	}
}
