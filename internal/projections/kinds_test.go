package projections

import (
	"testing"

	"github.com/dynamill/dynamill/internal/projections/internal/host"
)

// TestFamilyOfSeveralKindsHasARoleOnce looks at aggregates, hot rules and ordered kinds, which are one family each: acting for
// all would do all work twice.
func TestFamilyOfSeveralKindsHasARoleOnce(t *testing.T) {
	if n := len(host.FamiliesWith[host.Grouper](Kinds)); n != 7 {
		t.Errorf("%d families have groups, want 7", n)
	}
	if n := len(host.FamiliesWith[host.Debouncer](Kinds)); n != 2 {
		t.Errorf("%d families put displays off, want 2", n)
	}
	if n := len(host.FamiliesWith[host.Keeper](Kinds)); n != 7 {
		t.Errorf("%d families keep rows, want 7", n)
	}
}
