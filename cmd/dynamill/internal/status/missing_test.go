package status

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/projections/inspect"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/sighting"
)

func inspectedMissing() []inspect.RecordedMissing {
	return []inspect.RecordedMissing{{At: time.Date(2026, 1, 3, 3, 4, 5, 0, time.UTC), Whole: true,
		MissingTargets: projections.MissingTargets{
			Rule: "total", Entity: "Order", Sources: 49, Targets: 1, Examples: []string{"O#\x1bE3"},
			OtherCase: &projections.OtherCase{Missing: "O#\x1bE3", Exists: "O#\x1be3"},
		}}}
}

func TestStatusListsMissingTargets(t *testing.T) {
	found := inspected()
	found.Missing = append(inspectedMissing(), inspect.RecordedMissing{MissingTargets: projections.MissingTargets{
		Rule: "lines", Entity: "Order", Unique: "orderId", Sources: 1, Targets: 1, About: true, All: true, Examples: []string{"o1"},
	}, At: time.Date(2026, 1, 4, 0, 0, 0, 0, time.UTC)})
	want := `
targets that do not exist
  rule total: 49 sources point at 1 Order item that does not exist: O#\x1bE3; O#\x1be3 exists, which differs from O#\x1bE3 in letter case (after a look at the whole table, 2026-01-03T03:04:05Z)
  rule lines: about 1 source points at 1 value of Order.orderId that does not exist: o1; none of its targets exists: compare its ` +
		"`by`" + ` with the table's keys` +
		` (as a process has seen it since it started, 2026-01-04T00:00:00Z)
  ` + sighting.CaseRemedy + "\n  `dynamill verify` looks anew\n"
	text := newReport(found, inspectedLeases(), &rules.Set{}).Text()
	if _, got, _ := strings.Cut(text, "\ntargets"); "\ntargets"+got != want {
		t.Error(cmp.Diff(want, "\ntargets"+got))
	}
}
