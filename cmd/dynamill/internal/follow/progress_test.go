package follow

import (
	"testing"
	"time"

	"github.com/dynamill/dynamill"
	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/progress"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/streamreader"
)

func TestFollowStateNamesTheWorkAtHand(t *testing.T) {
	now := time.Unix(1000, 0)
	quiet := dynamill.Status{Stream: streamreader.Stats{Records: 12_345}, Engine: projections.Stats{Writes: 7}}
	late := quiet
	late.Stream.Lag = time.Minute
	seeding := func(s dynamill.Status, waits bool, seed projections.SeedProgress) dynamill.Status {
		s.Seeding, s.SeedWaits, s.Seed = true, waits, seed
		return s
	}
	fanOut := func(s dynamill.Status, seconds int64) dynamill.Status {
		s.FanOut = &projections.TaskProgress{Rule: "names", Parent: change.Key{Partition: "USER#1", Sort: "PROFILE"}, Children: 2000}
		s.FanOutSince = time.Unix(now.Unix()-seconds, 0)
		return s
	}
	for _, c := range []struct {
		name  string
		state followState
		line  string
	}{
		{"following", followState{Status: quiet}, "following  12,345 records  0/s  lag 0s  writes 7"},
		{"catching up", followState{Status: late, drains: true}, "draining  [....................] 0%  12,345 records  0/s  lag 1m0s  writes 7"},
		{"backlog", followState{Status: seeding(late, true, projections.SeedProgress{})},
			"applying the stream's backlog before seeding  [....................] 0%  12,345 records  0/s  lag 1m0s  writes 7"},
		{"seeding", followState{Status: fanOut(seeding(late, false, projections.SeedProgress{Pass: 2, Passes: 3, Items: 50}), 9), items: 100},
			"seeding, pass 2 of 3  [##########..........] 50%  50 of about 100 items  0/s  records 12,345  lag 1m0s  writes 7"},
		{"seeding, not counted", followState{Status: seeding(quiet, false, projections.SeedProgress{Pass: 1, Items: 50})},
			"seeding, pass 1 of 1  50 items  0/s  records 12,345  lag 0s  writes 7"},
		{"a short fan-out", followState{Status: fanOut(quiet, 0)}, "following  12,345 records  0/s  lag 0s  writes 7"},
		{"a long fan-out", followState{Status: fanOut(quiet, 1)},
			"fan-out of rule names from USER#1/PROFILE  2,000 children  0/s  records 12,345  lag 0s  writes 7"},
		{"a long fan-out beside records", followState{Status: fanOut(late, 1)},
			"following  [....................] 0%  12,345 records  0/s  fan-out of rule names from USER#1/PROFILE: 2,000 children  lag 1m0s  " +
				"writes 7"},
	} {
		c.state.at = now
		var meter progress.Meter
		shown := c.state.shown()
		if got := progress.Line(shown, meter.Add(now, shown), 200); got != c.line {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.line)
		}
	}
}
