package verify

import (
	"testing"
	"time"

	"github.com/dynamill/dynamill/internal/drift"
)

func TestVerdictOfAReading(t *testing.T) {
	const settle = 10 * time.Second
	wrong := []drift.Finding{{What: drift.Wrong}}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	seen := &drift.Reading{Findings: wrong, State: "a"}
	for name, c := range map[string]struct {
		last    *drift.Reading
		ago     time.Duration
		reading drift.Reading
		want    verdict
	}{
		"right by now":                    {nil, 0, drift.Reading{State: "a"}, cleared},
		"right by now, after it was not":  {seen, settle, drift.Reading{State: "b"}, cleared},
		"seen for the first time":         {nil, 0, drift.Reading{Findings: wrong, State: "a"}, again},
		"too soon after the first time":   {seen, settle - 1, drift.Reading{Findings: wrong, State: "a"}, again},
		"the same for long enough":        {seen, settle, drift.Reading{Findings: wrong, State: "a"}, lasting},
		"wrong in another way":            {seen, settle, drift.Reading{Findings: wrong, State: "b"}, again},
		"a fan-out has still to come":     {seen, settle, drift.Reading{Findings: wrong, State: "a", Waiting: "fan-out"}, again},
		"right although something is due": {nil, 0, drift.Reading{State: "a", Waiting: "fan-out"}, cleared},
		"parked":                          {nil, 0, drift.Reading{Findings: wrong, State: "a", Waiting: "parked", Final: true}, parked},
		"a sum, for the first time":       {nil, 0, drift.Reading{Suspect: drift.Suspect{Kind: drift.Sum}, Findings: wrong, State: "a"}, again},
		"a sum is no lag": {seen, settle, drift.Reading{Suspect: drift.Suspect{Kind: drift.Sum}, Findings: wrong, State: "a"},
			proven},
		"a sum that moved meanwhile": {nil, 0, drift.Reading{Suspect: drift.Suspect{Kind: drift.Sum}, Findings: wrong, Waiting: "fast"}, again},
		"a sum that moved and seems right": {nil, 0, drift.Reading{
			Suspect: drift.Suspect{Kind: drift.Sum}, Waiting: "fast",
		}, again},
	} {
		o := &openSuspect{last: c.last, at: now.Add(-c.ago)}
		if got := o.decide(c.reading, now, settle); got != c.want {
			t.Errorf("%s: verdict %d, want %d", name, got, c.want)
		}
	}
}

func TestASuspectThatMovesBeginsAnew(t *testing.T) {
	wrong := []drift.Finding{{What: drift.Wrong}}
	at := time.Now()
	o := &openSuspect{}
	for i, c := range []struct {
		state string
		after time.Duration
		want  verdict
	}{{"a", 0, again}, {"b", 9 * time.Second, again}, {"b", 15 * time.Second, again}, {"b", 19 * time.Second, lasting}} {
		if got := o.decide(drift.Reading{Findings: wrong, State: c.state}, at.Add(c.after), 10*time.Second); got != c.want {
			t.Errorf("reading %d: verdict %d, want %d", i, got, c.want)
		}
	}
}

func TestASampleIsOfItsSizeAndTheSameForItsSeed(t *testing.T) {
	v, again, other := run{}, run{}, run{}
	v.Sample, v.SampleSeed, again.Sample, again.SampleSeed, other.Sample, other.SampleSeed = 0.1, 5, 0.1, 5, 0.1, 6
	n, different := 0, 0
	for i := range 20_000 {
		about := "6member-count\x00" + time.Duration(i).String()
		if v.sampled(about) {
			n++
		}
		if v.sampled(about) != again.sampled(about) {
			t.Fatal("the same seed draws another sample")
		}
		if v.sampled(about) != other.sampled(about) {
			different++
		}
	}
	if n < 1800 || n > 2200 || different < 1000 {
		t.Errorf("of 20,000 things 10%% are %d; %d differ under another seed", n, different)
	}
}
