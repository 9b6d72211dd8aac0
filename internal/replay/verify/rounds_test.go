package verify

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
)

// late is a stream of one record, which is applied at some time.
type late struct {
	Auditor
	applied bool
	blind   bool
}

func (l *late) Applied(context.Context) (Applied, error) {
	return Applied{Shards: map[string]Checkpoint{"s": {Done: l.applied}}, Blind: l.blind}, nil
}

func (l *late) Unapplied(_ context.Context, then Applied, f func(*change.Record) error) error {
	if then.Shards["s"].Done {
		return nil
	}
	return f(&change.Record{})
}

func (l *late) Concerns(_ *change.Record, emit func(string)) { emit("it") }

// rounds runs rounds over one suspect, which each reads.
func (l *late) rounds(t *testing.T, waits time.Duration, each func(n int) drift.Reading) ([]drift.Reading, *run) {
	t.Helper()
	v := &run{Config: Config{Auditor: l, Pending: l, Settle: time.Millisecond, Wait: waits}}
	v.summary.Undecided = map[string]int64{}
	n := 0
	wait, _ := v.waits(true, false)
	found, err := v.rounds(t.Context(), []drift.Suspect{{Kind: drift.Leftover}}, wait,
		func(context.Context, []drift.Suspect) ([]drift.Reading, error) {
			n++
			return []drift.Reading{each(n)}, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	return found, v
}

func wrong(concern string) drift.Reading {
	return drift.Reading{State: "a", Findings: []drift.Finding{{What: drift.Wrong}}, Concerns: []string{concern}}
}

func TestARecordThatIsAppliedJustAfterTheReadingExplainsIt(t *testing.T) {
	l := &late{}
	found, v := l.rounds(t, time.Minute, func(n int) drift.Reading {
		if n <= 2 {
			l.applied = n == 2 // between this reading and the look at the stream
			return wrong("it")
		}
		return drift.Reading{State: "b"}
	})
	if len(found) > 0 || v.summary.Cleared != 1 {
		t.Errorf("found %v, %+v", found, v.summary)
	}
}

func TestSuspectWithoutPendingRecordIsDrift(t *testing.T) {
	found, v := (&late{}).rounds(t, time.Minute, func(int) drift.Reading { return wrong("another") })
	if len(found) != 1 || len(v.summary.Undecided) > 0 {
		t.Errorf("found %v, %+v", found, v.summary)
	}
}

func TestSuspectOfAPendingRecordStaysUndecided(t *testing.T) {
	for name, l := range map[string]*late{WhyRecords: {}, whyNoCheckpoints: {blind: true}} {
		found, v := l.rounds(t, 20*time.Millisecond, func(int) drift.Reading { return wrong("it") })
		if len(found) > 0 || v.summary.Undecided[name] != 1 {
			t.Errorf("%s: found %v, %+v", name, found, v.summary)
		}
		if examples := v.summary.Examples; len(examples) != 1 || examples[0].Why != name || examples[0].What != drift.Wrong {
			t.Errorf("%s: the examples are %+v, want the finding and its reason", name, examples)
		}
	}
}

func TestUndecidedExamplesOfAReasonAreBounded(t *testing.T) {
	v := &run{}
	v.summary.Undecided = map[string]int64{}
	for range undecidedExamplesMax + 3 {
		v.leaveUndecided(&openSuspect{why: whyMoved, suspect: drift.Suspect{Kind: drift.Sum, Group: "g"}})
	}
	v.leaveUndecided(&openSuspect{why: whyUnsettled})
	if n := len(v.summary.Examples); n != undecidedExamplesMax+1 || v.summary.Undecided[whyMoved] != undecidedExamplesMax+3 {
		t.Errorf("%d examples, counted %v", n, v.summary.Undecided)
	}
	if e := v.summary.Examples[0]; e.Kind != drift.Sum || e.Group != "g" {
		t.Errorf("an example without a finding is %+v, want it to name its aggregate", e)
	}
}

func TestMovingSuspectStaysUndecided(t *testing.T) {
	found, v := (&late{}).rounds(t, 20*time.Millisecond, func(n int) drift.Reading {
		r := wrong("another")
		r.State = string(rune('a' + n%20))
		return r
	})
	if len(found) > 0 || v.summary.Undecided[whyMoved] != 1 {
		t.Errorf("found %v, %+v", found, v.summary)
	}
}

func TestStoppingEndsTheRounds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	v := &run{Config: Config{Settle: time.Hour, Wait: time.Hour}}
	wait, _ := v.waits(true, false)
	_, err := v.rounds(ctx, []drift.Suspect{{}}, wait, func(context.Context, []drift.Suspect) ([]drift.Reading, error) {
		cancel()
		return []drift.Reading{wrong("it")}, nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
}
