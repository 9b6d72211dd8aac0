package main

import (
	"strings"
	"testing"
	"time"
)

// of makes timings of readings that took so many seconds, all to the same record.
func of(seconds ...float64) []timing {
	var all []timing
	for _, s := range seconds {
		all = append(all, timing{total: time.Duration(s * float64(time.Second)), sequence: "9"})
	}
	return all
}

func TestTheRatioIsTakenRoundByRound(t *testing.T) {
	// The machine was ten times as slow in the second round, for both alike.
	r := newReport(options{records: 1000, rounds: 3}, map[string][]timing{
		nameBare:     of(0.9, 9, 0.9),
		nameDynamill: of(1, 10, 1),
		nameRedpanda: of(2, 20, 1.5),
	})
	if got := *r.OfBare; got < 0.899 || got > 0.901 {
		t.Errorf("of the bare loop: %v, want 0.9", got)
	}
	if got := *r.OfRedpanda; got < 1.999 || got > 2.001 {
		t.Errorf("of Redpanda Connect: %v, want 2", got)
	}
	if err := r.verdict(bounds{ofBare: 0.85, ofRedpanda: 1}); err != nil {
		t.Error(err)
	}
}

func TestAVerdictSaysWhatIsTooSlow(t *testing.T) {
	diverged := of(1)
	diverged[0].sequence = "8"
	tests := map[string]struct {
		results map[string][]timing
		want    string
	}{
		"slower than the bare loop": {map[string][]timing{nameBare: of(0.8), nameDynamill: of(1)},
			"bare loop's throughput, less than 0.85"},
		"slower than Redpanda Connect": {map[string][]timing{nameDynamill: of(1), nameRedpanda: of(0.9)},
			"Redpanda Connect's throughput, less than 1.00"},
		"another last record": {map[string][]timing{nameDynamill: diverged, nameRedpanda: of(3)},
			"redpanda ended with another record"},
		"fast enough, and nobody besides": {map[string][]timing{nameDynamill: of(1)}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := newReport(options{records: 1000, rounds: 1}, test.results).verdict(bounds{ofBare: 0.85, ofRedpanda: 1})
			switch {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestACounterTakesTheTimeOfTheLastRecordThatIsWanted(t *testing.T) {
	c := newCounter(5)
	c.add(3, "003")
	c.add(0, "")
	if _, err := c.timing(); err == nil {
		t.Error("a reading that is not over has a timing")
	}
	c.add(2, "005")
	<-c.done
	got, err := c.timing()
	if err != nil {
		t.Fatal(err)
	}
	if got.sequence != "5" || got.total < got.startup || got.total == 0 {
		t.Errorf("timing %+v", got)
	}
	c.add(1, "006")
	if _, err := c.timing(); err == nil {
		t.Error("a record too many goes unnoticed")
	}
}
