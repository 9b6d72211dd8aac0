package proof

import (
	"testing"

	"github.com/dynamill/dynamill/internal/guard"
)

// schedule is a history written for one guard: the one bad moment that random
// schedules rarely meet.
type schedule struct {
	guard   guard.Guard
	history *History
}

func schedules(t *testing.T) []schedule {
	t.Helper()
	return nil
}

// TestSchedulesHoldWithEveryGuard lives through the schedules with all guards in place.
func TestSchedulesHoldWithEveryGuard(t *testing.T) {
	for _, s := range schedules(t) {
		t.Run(s.guard.String()+"/"+s.history.Name, func(t *testing.T) {
			o := inBubble(t, s.history, true)
			if len(o.Problems) == 0 {
				return
			}
			for _, line := range o.Trace {
				t.Log(line)
			}
			for _, p := range o.Problems {
				t.Error(p)
			}
		})
	}
}
