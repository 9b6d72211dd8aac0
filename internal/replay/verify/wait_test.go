package verify

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynamill/dynamill/internal/drift"
)

// TestWaitEndsInTime waits for suspects that no reading decides: records of
// them are never applied.
func TestWaitEndsInTime(t *testing.T) {
	const settle = 10 * time.Second
	for name, c := range map[string]struct {
		wait          time.Duration
		singles, sums bool
		want          time.Duration
		reason        string
	}{
		"items alone":             {2 * time.Minute, true, false, 2 * time.Minute, WhyRecords},
		"sums alone":              {2 * time.Minute, false, true, 2 * time.Minute, WhyRecords},
		"items, then sums":        {2 * time.Minute, true, true, 2 * time.Minute, WhyRecords},
		"just enough for proof":   {20 * time.Second, true, true, 20 * time.Second, WhyRecords},
		"less than proof takes":   {5 * time.Second, true, true, 5 * time.Second, whyUnsettled},
		"no multiple of --settle": {25 * time.Second, true, false, 25 * time.Second, WhyRecords},
		"no wait at all":          {0, true, true, 0, whyUnsettled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := &run{Config: Config{Auditor: &late{}, Pending: &late{}, Settle: settle, Wait: c.wait}}
				v.summary.Undecided = map[string]int64{}
				begun := time.Now()
				forSingles, forSums := v.waits(c.singles, c.sums)
				judge := func(w *wait, kind drift.Kind, judged bool) {
					if !judged {
						return
					}
					_, err := v.rounds(t.Context(), []drift.Suspect{{Kind: kind}}, w, func(context.Context, []drift.Suspect) ([]drift.Reading, error) {
						return []drift.Reading{wrong("it")}, nil
					})
					if err != nil {
						t.Fatal(err)
					}
				}
				judge(forSingles, drift.Leftover, c.singles)
				judge(forSums, drift.Display, c.sums)
				if took := time.Since(begun); took != c.want {
					t.Errorf("took %s, want %s", took, c.want)
				}
				if len(v.summary.Undecided) != 1 || v.summary.Undecided[c.reason] == 0 {
					t.Errorf("undecided are %v, want only %q", v.summary.Undecided, c.reason)
				}
			})
		})
	}
}

// TestLaterSuspectsAreProvenAfterTheWait has one Config.Wait for many chunks:
// those that come after it still get the readings that prove drift.
func TestLaterSuspectsAreProvenAfterTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &run{Config: Config{Auditor: &late{}, Pending: &late{}, Settle: 10 * time.Second, Wait: time.Minute}}
		v.summary.Undecided = map[string]int64{}
		v.waits(true, true)
		time.Sleep(time.Hour)
		forSingles, forSums := v.waits(true, true)
		for _, w := range []*wait{forSingles, forSums} {
			found, err := v.rounds(t.Context(), []drift.Suspect{{Kind: drift.Leftover}}, w,
				func(context.Context, []drift.Suspect) ([]drift.Reading, error) {
					return []drift.Reading{wrong("another")}, nil
				})
			if err != nil || len(found) != 1 {
				t.Errorf("found %v, %v; want the drift", found, err)
			}
		}
	})
}

func TestNothingSuspectIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &run{Config: Config{Settle: 10 * time.Second, Wait: time.Minute}}
		begun := time.Now()
		right := func(context.Context, []drift.Suspect) ([]drift.Reading, error) {
			return []drift.Reading{{State: "a"}}, nil
		}
		for _, suspects := range [][]drift.Suspect{nil, {{Kind: drift.Leftover}}} {
			w, _ := v.waits(true, true)
			if _, err := v.rounds(t.Context(), suspects, w, right); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(begun); took != 0 {
			t.Errorf("took %s, want no wait", took)
		}
	})
}

func TestWaitReportsItsReasons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []Progress
		v := &run{Config: Config{Auditor: &late{}, Pending: &late{}, Settle: 10 * time.Second, Wait: 30 * time.Second,
			Progress: func(p Progress) {
				if p.Phase == PhaseWaiting {
					told = append(told, p)
				}
			}}}
		v.summary.Undecided, v.progress.Open = map[string]int64{}, 1
		w, _ := v.waits(true, false)
		if _, err := v.rounds(t.Context(), []drift.Suspect{{}}, w, func(context.Context, []drift.Suspect) ([]drift.Reading, error) {
			return []drift.Reading{wrong("it")}, nil
		}); err != nil {
			t.Fatal(err)
		}
		if len(told) != 30 {
			t.Fatalf("told %d times in 30 s, want every second", len(told))
		}
		first, last := told[0], told[29]
		if first.WaitLeft != 30*time.Second || first.Reasons[whyUnsettled] != 1 || first.Open != 1 {
			t.Errorf("the first is %+v", first)
		}
		if last.WaitLeft != time.Second || last.Reasons[WhyRecords] != 1 {
			t.Errorf("the last is %+v", last)
		}
	})
}
