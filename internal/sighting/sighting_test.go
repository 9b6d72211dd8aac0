package sighting

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections"
)

// TestWarningsNeedThePicture looks when warnings are given: an entity may be rare among records, and
// a process may have looked at a part of the table.
func TestWarningsNeedThePicture(t *testing.T) {
	user := func(items, records int64) projections.EntityMatches {
		return projections.EntityMatches{Entity: "User", Items: items, Records: records, Rules: []string{"r"}}
	}
	group := projections.EntityMatches{Entity: "Group", Rules: []string{"a", "b"}}
	made := projections.EntityMatches{Entity: "Member"}
	unmatched := []change.Key{{Partition: "X#1"}, {Partition: "X#2"}}
	nothing, noGroup := "no item and no record", "nothing is of the entity Group, which the rules a, b need"
	for name, c := range map[string]struct {
		seen Seen
		over bool
		want []string // each begins a warning
	}{
		"empty table": {Seen{Whole: true, Matches: projections.Matches{Entities: []projections.EntityMatches{user(0, 0), group}}},
			true, nil},
		"whole table": {Seen{Whole: true, Matches: projections.Matches{Items: 5,
			Entities: []projections.EntityMatches{user(5, 0), group, made}}}, false, []string{noGroup}},
		"part of the table": {Seen{Matches: projections.Matches{Items: 5, Entities: []projections.EntityMatches{user(5, 0), group}}}, true,
			nil},
		"records alone": {Seen{Matches: projections.Matches{Records: 5000, Entities: []projections.EntityMatches{user(0, 5000), group}}},
			true, nil},
		"empty, then records": {Seen{Whole: true, Matches: projections.Matches{Records: 999,
			Entities: []projections.EntityMatches{user(0, 999), group}}}, false, nil},
		"empty, enough records": {Seen{Whole: true, Matches: projections.Matches{Records: 1000,
			Entities: []projections.EntityMatches{user(0, 1000), group}}}, false, []string{noGroup}},
		"few strays": {Seen{Matches: projections.Matches{Records: 9, UnmatchedRecords: 9, Unmatched: unmatched}}, false, nil},
		"a drain of strays": {Seen{Matches: projections.Matches{Records: 9, UnmatchedRecords: 9, Unmatched: unmatched}}, true,
			[]string{nothing}},
		"many strays": {Seen{Matches: projections.Matches{Records: 1000, UnmatchedRecords: 1000, Unmatched: unmatched}}, false,
			[]string{nothing}},
		"a table of strays": {Seen{Whole: true, Matches: projections.Matches{Items: 2, UnmatchedItems: 2, Unmatched: unmatched}}, false,
			[]string{nothing}},
		"some targets missing": {Seen{Targets: []projections.MissingTargets{{Rule: "r", Sources: 1, Targets: 1}}}, true, nil},
		"all targets missing": {Seen{Targets: []projections.MissingTargets{{Rule: "r", Sources: 1, Targets: 1, All: true}}}, true,
			[]string{"rule r: 1 source points at 1"}},
		"another case is there": {Seen{Targets: []projections.MissingTargets{{Rule: "r", Sources: 2, Targets: 2,
			OtherCase: &projections.OtherCase{}}}}, true, []string{"rule r: 2 sources point at 2", CaseRemedy}},
		"attributes in capitals": {Seen{Matches: projections.Matches{Cases: []projections.CaseMismatch{{Entity: "User", Rules: []string{"r"},
			Variable: "id", Attribute: "U", Key: "u"}}}}, true, []string{"the key of User", CaseRemedy}},
	} {
		got := c.seen.Warnings(c.over)
		if !slices.EqualFunc(c.want, got, func(want, got string) bool { return strings.HasPrefix(got, want) }) {
			t.Errorf("%s: warns %q, want %q", name, got, c.want)
		}
		if len(c.seen.Unmatched) > 0 && len(got) > 0 && !strings.Contains(got[0], "X#1, X#2") {
			t.Errorf("%s: no keys in %q", name, got[0])
		}
	}
}

func TestWarningIsLoggedOnce(t *testing.T) {
	var w Warner
	for _, c := range []struct{ all, want []string }{
		{[]string{"rule r: 1 source"}, []string{"rule r: 1 source"}},
		{[]string{"rule r: 2 sources", "rule s: 1 source"}, []string{"rule s: 1 source"}},
		{[]string{"nothing is of the entity A: x", "nothing is of the entity B: x"},
			[]string{"nothing is of the entity A: x", "nothing is of the entity B: x"}},
		{[]string{"nothing is of the entity A: y", "rule s: 9 sources"}, nil},
	} {
		if diff := cmp.Diff(c.want, w.Unsaid(c.all), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("of %q, want (-) and logged (+):\n%s", c.all, diff)
		}
	}
}
