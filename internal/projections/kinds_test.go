package projections

import (
	"testing"

	"github.com/dynamill/dynamill/internal/projections/internal/host"
)

// TestFamilyOfSeveralKindsHasARoleOnce looks at aggregates, hot rules and ordered kinds, which are one family each: acting for
// all would do all work twice.
func TestFamilyOfSeveralKindsHasARoleOnce(t *testing.T) {
	if n := len(host.Having[host.Gatherer](Kinds)); n != 3 {
		t.Errorf("%d families gather, want 3", n)
	}
	if n := len(host.Having[host.Keeper](Kinds)); n != 7 {
		t.Errorf("%d families keep rows, want 7", n)
	}
}
