package parked

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/output"
)

// TestParkedListIsOneJSONValue compares the list that is printed in parts with
// what printJSON prints.
func TestParkedListIsOneJSONValue(t *testing.T) {
	for n := range 3 {
		var parts, whole strings.Builder
		list := list{Output: &output.Output{Stdout: &parts, JSON: true}}
		entries := make([]Entry, n)
		for i := range entries {
			entries[i] = Entry{ID: fmt.Sprint("r/<", i, ">"), Reason: "a\x1b[31m"}
			list.add(entries[i])
		}
		list.end()
		(&output.Output{Stdout: &whole}).PrintJSON(map[string]any{"parked": entries})
		if parts.String() != whole.String() {
			t.Errorf("%d entries are printed as\n%s\nwant\n%s", n, parts.String(), whole.String())
		}
	}
}

func TestParkedListIsAlignedInParts(t *testing.T) {
	var out strings.Builder
	list := list{Output: &output.Output{Stdout: &out}}
	for i := range 2*listedAtOnce + 1 {
		list.add(Entry{ID: fmt.Sprintf("r/%06d", i), Rule: "r", Reason: "x"})
		if len(list.table.Rows) >= listedAtOnce {
			t.Fatalf("%d lines are held", len(list.table.Rows))
		}
	}
	list.end()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2*listedAtOnce+2 || len(lines[1]) != len(lines[len(lines)-1]) {
		t.Errorf("%d lines, of which the last is %q", len(lines), lines[len(lines)-1])
	}
}
