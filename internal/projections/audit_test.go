package projections

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAuditCanDoNothingElse holds what an audit offers to a list: an audit knows no
// clock and no place of a scan, so that the methods of an engine are none of its own.
func TestAuditCanDoNothingElse(t *testing.T) {
	want := []string{
		"AddAmounts", "ClearParked", "Combine", "Concerns", "Contributions", "DropTorn", "Facts", "Judge", "LookForTargets", "Matches",
		"MendEntry", "MendSet", "MendSum",
		"Operations", "PruneReference", "Read", "ReadSums", "RowFacts", "Waiting",
	}
	var got []string
	of := reflect.TypeFor[*Audit]()
	for method := range of.NumMethod() {
		got = append(got, of.Method(method).Name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
