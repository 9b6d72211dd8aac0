package projections

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/inspect"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
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
	found, userTable, err := inspect.OpenParked(w.ctx, w.sim, "app-dynamill")
	if err != nil || userTable != "app" {
		t.Fatalf("%+v, %v", found, err)
	}
	var got []inspect.Parked
	if err := found.EachParked(w.ctx, func(page []inspect.Parked) error {
		got = append(got, page...)
		return nil
	}); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(inspect.Parked{}, change.Position{})); diff != "" {
		t.Error(diff)
	}
	if record, err := found.FindParked(w.ctx, "record/1"); err != nil || record.Raw != "{}" {
		t.Errorf("the record is %+v, %v; want its text", record, err)
	}
	if diff := cmp.Diff(before, w.scan("app-dynamill")); diff != "" {
		t.Errorf("inspecting changed the state table:\n%s", diff)
	}
}

func TestInspectingWhatIsParkedNeedsARegistry(t *testing.T) {
	w := newWorld(t, socialRules)
	if _, _, err := inspect.OpenParked(w.ctx, w.sim, "app-dynamill"); !errors.As(err, new(*table.SetupError)) {
		t.Errorf("%v; want a SetupError", err)
	}
}
