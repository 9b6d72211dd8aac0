package projections

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/change"
)

// Without rules the same is read as with them, and nothing is changed by it.
func TestInspectionListsWhatIsParked(t *testing.T) {
	w := newWorld(t, socialRules)
	e := w.seeded()
	if err := e.ParkRecord(w.ctx, "1", "record.value", "the number is none", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	w.put(comment("c1", change.Item{"score": s("high")}))
	w.drain(e, 0)
	want, err := e.Parked(w.ctx)
	if err != nil || len(want) != 2 {
		t.Fatalf("parked are %+v, %v", want, err)
	}
	before := w.scan("app-dynamill")
	table, got, err := InspectParked(w.ctx, w.sim, "app-dynamill")
	if err != nil || table != "app" {
		t.Errorf("table %q, %v", table, err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Parked{}, change.Position{})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(before, w.scan("app-dynamill")); diff != "" {
		t.Errorf("inspecting changed the state table:\n%s", diff)
	}
}

func TestInspectingWhatIsParkedNeedsARegistry(t *testing.T) {
	w := newWorld(t, socialRules)
	if _, _, err := InspectParked(w.ctx, w.sim, "app-dynamill"); !errors.As(err, new(*SetupError)) {
		t.Errorf("%v; want a SetupError", err)
	}
}
