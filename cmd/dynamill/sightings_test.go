package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/projections"
	"github.com/dynamill/dynamill/rules"
)

func inspectedMissing() []projections.RecordedMissing {
	return []projections.RecordedMissing{{At: time.Date(2026, 1, 3, 3, 4, 5, 0, time.UTC), Whole: true, MissingTargets: projections.MissingTargets{
		Rule: "total", Entity: "Order", Sources: 49, Targets: 1, Examples: []string{"O#\x1bE3"},
		OtherCase: &projections.OtherCase{Missing: "O#\x1bE3", Exists: "O#\x1be3"},
	}}}
}

func TestStatusListsMissingTargets(t *testing.T) {
	found := inspected()
	found.Missing = append(inspectedMissing(), projections.RecordedMissing{MissingTargets: projections.MissingTargets{
		Rule: "lines", Entity: "Order", Unique: "orderId", Sources: 1, Targets: 1, About: true, All: true, Examples: []string{"o1"},
	}, At: time.Date(2026, 1, 4, 0, 0, 0, 0, time.UTC)})
	want := `
targets that do not exist
  rule total: 49 sources point at 1 Order item that does not exist: O#\x1bE3; O#\x1be3 exists, which differs from O#\x1bE3 in letter case (after a look at the whole table, 2026-01-03T03:04:05Z)
  rule lines: about 1 source points at 1 value of Order.orderId that does not exist: o1; none of its targets exists: compare its ` + "`by`" + ` with the table's keys` +
		` (as a process has seen it since it started, 2026-01-04T00:00:00Z)
  ` + caseRemedy + "\n  `dynamill verify` looks anew\n"
	text := newStatus(found, inspectedLeases(), &rules.Set{}).text()
	if _, got, _ := strings.Cut(text, "\ntargets"); "\ntargets"+got != want {
		t.Error(cmp.Diff(want, "\ntargets"+got))
	}
}

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
		seen sightings
		over bool
		want []string // each begins a warning
	}{
		"empty table":            {sightings{whole: true, Matches: projections.Matches{Entities: []projections.EntityMatches{user(0, 0), group}}}, true, nil},
		"whole table":            {sightings{whole: true, Matches: projections.Matches{Items: 5, Entities: []projections.EntityMatches{user(5, 0), group, made}}}, false, []string{noGroup}},
		"part of the table":      {sightings{Matches: projections.Matches{Items: 5, Entities: []projections.EntityMatches{user(5, 0), group}}}, true, nil},
		"records alone":          {sightings{Matches: projections.Matches{Records: 5000, Entities: []projections.EntityMatches{user(0, 5000), group}}}, true, nil},
		"empty, then records":    {sightings{whole: true, Matches: projections.Matches{Records: 999, Entities: []projections.EntityMatches{user(0, 999), group}}}, false, nil},
		"empty, enough records":  {sightings{whole: true, Matches: projections.Matches{Records: 1000, Entities: []projections.EntityMatches{user(0, 1000), group}}}, false, []string{noGroup}},
		"few strays":             {sightings{Matches: projections.Matches{Records: 9, UnmatchedRecords: 9, Unmatched: unmatched}}, false, nil},
		"a drain of strays":      {sightings{Matches: projections.Matches{Records: 9, UnmatchedRecords: 9, Unmatched: unmatched}}, true, []string{nothing}},
		"many strays":            {sightings{Matches: projections.Matches{Records: 1000, UnmatchedRecords: 1000, Unmatched: unmatched}}, false, []string{nothing}},
		"a table of strays":      {sightings{whole: true, Matches: projections.Matches{Items: 2, UnmatchedItems: 2, Unmatched: unmatched}}, false, []string{nothing}},
		"some targets missing":   {sightings{targets: []projections.MissingTargets{{Rule: "r", Sources: 1, Targets: 1}}}, true, nil},
		"all targets missing":    {sightings{targets: []projections.MissingTargets{{Rule: "r", Sources: 1, Targets: 1, All: true}}}, true, []string{"rule r: 1 source points at 1"}},
		"another case is there":  {sightings{targets: []projections.MissingTargets{{Rule: "r", Sources: 2, Targets: 2, OtherCase: &projections.OtherCase{}}}}, true, []string{"rule r: 2 sources point at 2", caseRemedy}},
		"attributes in capitals": {sightings{Matches: projections.Matches{Cases: []projections.CaseMismatch{{Entity: "User", Rules: []string{"r"}, CaseDifference: rules.CaseDifference{Variable: "id", Attribute: "U", Key: "u"}}}}}, true, []string{"the key of User", caseRemedy}},
	} {
		got := c.seen.warnings(c.over)
		if !slices.EqualFunc(c.want, got, func(want, got string) bool { return strings.HasPrefix(got, want) }) {
			t.Errorf("%s: warns %q, want %q", name, got, c.want)
		}
		if len(c.seen.Unmatched) > 0 && len(got) > 0 && !strings.Contains(got[0], "X#1, X#2") {
			t.Errorf("%s: no keys in %q", name, got[0])
		}
	}
}

func TestWarningIsLoggedOnce(t *testing.T) {
	var w warner
	for _, c := range []struct{ all, want []string }{
		{[]string{"rule r: 1 source"}, []string{"rule r: 1 source"}},
		{[]string{"rule r: 2 sources", "rule s: 1 source"}, []string{"rule s: 1 source"}},
		{[]string{"nothing is of the entity A: x", "nothing is of the entity B: x"}, []string{"nothing is of the entity A: x", "nothing is of the entity B: x"}},
		{[]string{"nothing is of the entity A: y", "rule s: 9 sources"}, nil},
	} {
		if diff := cmp.Diff(c.want, w.unsaid(c.all), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("of %q, want (-) and logged (+):\n%s", c.all, diff)
		}
	}
}
