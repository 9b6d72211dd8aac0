package lambdatest

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/proof/oracle"
)

const problemsMax = 10 // shown

// judge compares both tables with what a computation from scratch says.
func (h *history) judge() {
	h.Helper()
	items, err := h.scan(h.table)
	h.must(err)
	state, err := h.scan(h.stateTable())
	h.must(err)
	var found []oracle.Difference
	for _, finding := range []struct {
		what  string
		found []oracle.Difference
	}{
		{"drift", oracle.Drift(h.Set, items)},
		{"state table", h.audit(items, state)},
		{"not the engine's", oracle.Foreign(h.Set, slices.Collect(maps.Values(h.app.base)), items)},
	} {
		for _, d := range finding.found {
			if found = append(found, d); len(found) <= problemsMax {
				h.Errorf("%s: %s", finding.what, d)
			}
		}
	}
	if len(found) > 0 {
		h.Fatalf("%d differences among %d items and %d of the state table; %d writes; %s; batches of %d\n%s",
			len(found), len(items), len(state), h.app.writes, h.function.Counts(), h.mapping.BatchSize, h.report(found, items, state))
	}
}

// audit judges the state table: rows of records that could not be read by what
// was spoilt, all others by the items.
func (h *history) audit(items, state []change.Item) []oracle.Difference {
	h.Helper()
	var parked, rest []change.Item
	for _, row := range state {
		if row["pk"].Text() == "parked" && strings.HasPrefix(row["sk"].Text(), "record/") {
			parked = append(parked, row)
		} else {
			rest = append(rest, row)
		}
	}
	for _, problem := range h.spoiler.problems(parked) {
		h.Error(problem)
	}
	return oracle.Audit(h.Set, items, rest, time.Now(), oracle.DanglingReferences, oracle.ExpiringPositions, oracle.SeededDueMarks)
}
