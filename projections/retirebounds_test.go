package projections

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/change"
)

func TestARuleFileThatTheStateTableCannotKeepIsRefused(t *testing.T) {
	w := newWorld(t, socialRules)
	_, err := w.tryChanging(socialRules+strings.Repeat("# a comment\n", 40_000), nil)
	if setup := new(SetupError); !errors.As(err, &setup) || !strings.Contains(setup.Problem, "the state table keeps") {
		t.Errorf("a file that is too large: %v", err)
	}
}

// TestManyRulesChangeAtOnce changes more rules over time than one step of the registry can write.
func TestManyRulesChangeAtOnce(t *testing.T) {
	file := func(attribute string, n int) string {
		text := "version: 1\ntable: { keys: [pk, sk] }\nentities:\n  Group: { key: { pk: \"GROUP#${groupId}\", sk: METADATA } }\n" +
			"  Membership: { key: { pk: \"USER#${userId}\", sk: \"GROUP#${groupId}\" } }\n" +
			"  Visit: { key: { pk: \"VISIT#${visitId}\", sk: \"GROUP#${groupId}\" } }\nrules:\n"
		for i := range n {
			text += fmt.Sprintf("  count%d: { count: %s, as: Group.%s%d }\n", i, []string{"Visit", "Membership"}[i%2], attribute, i)
		}
		return text
	}
	w := newWorld(t, file("a", 40))
	w.putGroup()
	w.putMember("member")
	from := w.drain(w.seeded(), 0)
	var e *Engine
	for _, attribute := range []string{"b", "c", "d"} { // 40 rules retire each time, and nobody replays
		e = w.changing(file(attribute, 40), nil)
	}
	if _, err := w.tryChanging(file("e", 60), nil); !errors.As(err, new(*SetupError)) {
		t.Errorf("100 changes at once: %v", err)
	}
	w.use(file("d", 40))
	w.replay(e)
	w.drain(e, from)
	w.expect(group1, "d39", change.Number("1"))
	w.expectNone("a0", "a39", "b7", "c1", "_dm_count0", "_dm_count0-2", "_dm_count39-3")
	w.expectTrue()
}
