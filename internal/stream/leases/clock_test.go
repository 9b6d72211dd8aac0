package leases

import (
	"reflect"
	"testing"
	"time"
)

// TestClocksAreNotCompared lets a worker's clock be wrong by hours: its plan is
// the same, for it sees only how long it has waited itself.
func TestClocksAreNotCompared(t *testing.T) {
	const rows = "a w1! b w2 c w2 d w2 e w2 f<a -"
	byClock := func(wrong time.Duration) func(*Input) {
		return func(in *Input) {
			in.Now = in.Now.Add(wrong)
			for id, at := range in.Changed {
				in.Changed[id] = at.Add(wrong)
			}
		}
	}
	want := planFrom("w3", rows)
	if len(want.Take) == 0 || !want.Seek {
		t.Fatalf("nothing is planned: %+v", want)
	}
	for _, wrong := range []time.Duration{-30 * time.Hour, -3 * time.Minute, time.Second, 5 * time.Minute, 1000 * time.Hour} {
		if got := planFrom("w3", rows, byClock(wrong)); !reflect.DeepEqual(got, want) {
			t.Errorf("with a clock that is wrong by %v: %+v, want %+v", wrong, got, want)
		}
	}
}

// TestRowsHoldNoClock says why no clocks can be compared: nothing that a
// worker's clock shows is written, only when the stream made a record.
func TestRowsHoldNoClock(t *testing.T) {
	made := time.Unix(946684800, 0)
	row := Lease{Shard: "s", Stream: "stream", Checkpoint: TrimHorizon, Newest: made}.claimedBy(Worker{Name: "w1"})
	row = row.renewed(row)
	row = row.saved(row)
	var times []time.Time
	for i := range reflect.ValueOf(row).NumField() {
		if at, ok := reflect.ValueOf(row).Field(i).Interface().(time.Time); ok {
			times = append(times, at)
		}
	}
	if len(times) != 1 || !times[0].Equal(made) {
		t.Errorf("a row holds the times %v, want only that of its newest record, %v", times, made)
	}
}
