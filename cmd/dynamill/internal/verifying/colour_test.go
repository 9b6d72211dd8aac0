package verifying

import (
	"testing"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/progress"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/report"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/replay/verify"
)

func TestOutcomesHaveTheirColours(t *testing.T) {
	warned := report.Sightings{}
	warned.Cases = []projections.CaseMismatch{{}}
	for _, c := range []struct {
		summary verify.Summary
		waiting []string
		seen    report.Sightings
		want    string
	}{
		{verify.Summary{}, nil, report.Sightings{}, progress.Green},
		{verify.Summary{Undecided: map[string]int64{"still moving": 1}}, nil, report.Sightings{}, progress.Yellow},
		{verify.Summary{}, []string{"a rule that is not live"}, report.Sightings{}, progress.Yellow},
		{verify.Summary{}, nil, warned, progress.Yellow},
		{verify.Summary{All: 1, Found: map[drift.Kind]int64{drift.Sum: 1}}, nil, warned, progress.Red},
		{verify.Summary{All: 1, Found: map[drift.Kind]int64{drift.Sum: 1}, Repaired: 1}, nil, report.Sightings{}, progress.Green},
	} {
		r := &verification{waiting: c.waiting, seen: c.seen}
		if got := r.colour(&c.summary); got != c.want {
			t.Errorf("%+v is %q, want %q", c, got, c.want)
		}
	}
}
