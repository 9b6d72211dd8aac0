package audits_test

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/internal/projections/audits"
)

// TestAuditCanDoNothingElse holds what an audit offers to a list: an audit knows no
// clock and no place of a scan, so that the methods of an engine are none of its own.
func TestAuditCanDoNothingElse(t *testing.T) {
	want := []string{
		"AddAmounts", "Combine", "Concerns", "Contributions", "ExplainKey", "Facts", "Judge", "LookForTargets", "Matches", "Mend",
		"Operations", "Read", "ReadSums", "RowFacts", "Waiting",
	}
	var got []string
	of := reflect.TypeFor[*audits.Audit]()
	for method := range of.NumMethod() {
		got = append(got, of.Method(method).Name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
