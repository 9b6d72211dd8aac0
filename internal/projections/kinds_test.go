package projections

import (
	"testing"

	"github.com/dynamill/dynamill/internal/projections/internal/host"
)

// TestFamilyOfSeveralKindsHasARoleOnce looks at aggregates, hot rules and ordered kinds, which are one family each: acting for
// all would do all work twice.
func TestFamilyOfSeveralKindsHasARoleOnce(t *testing.T) {
	if n := len(host.Having[host.Grouper](Kinds)); n != 7 {
		t.Errorf("%d families have groups, want 7", n)
	}
	if n := len(host.Having[host.Deferrer](Kinds)); n != 2 {
		t.Errorf("%d families put displays off, want 2", n)
	}
	if n := len(host.Having[host.Keeper](Kinds)); n != 7 {
		t.Errorf("%d families keep rows, want 7", n)
	}
}
