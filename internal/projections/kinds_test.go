package projections

import (
	"testing"

	"github.com/dynamill/dynamill/internal/projections/internal/host"
)

// TestFamilyOfSeveralKindsHasARoleOnce looks at aggregates, which are one family: acting for
// both would do all work twice.
func TestFamilyOfSeveralKindsHasARoleOnce(t *testing.T) {
	if n := len(host.Having[host.Gatherer](Kinds)); n != 1 {
		t.Errorf("%d families gather, want 1", n)
	}
	if n := len(host.Having[host.Keeper](Kinds)); n != 4 {
		t.Errorf("%d families keep rows, want 4", n)
	}
}
