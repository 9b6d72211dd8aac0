package histories

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dynamill/dynamill/internal/proof/adversary"
)

// lateCount needs the tombstone of a membership, and that it stays for days.
func lateCount() schedule {
	return schedule{
		guard: "Tombstone", name: "a worker sleeps over the deletion of what it is about to count", rules: members,
		steps: []Step{
			puts(group), puts(membership), step(Rest, Delete, membership), befalls(adversary.Slept), befalls(adversary.Woke),
			{Turns: Rest, Kind: Judge},
		},
		strikes: []adversary.Strike{at(`^TransactWriteItems\n.*i/USER`, 0, adversary.Froze)},
	}
}

// TestMinutesOfSkewAreHarmless gives the workers clocks as wrong as those of drawn histories.
func TestMinutesOfSkewAreHarmless(t *testing.T) {
	for _, skews := range [][]time.Duration{nil, {skewMax, -skewMax}, {-skewMax, skewMax}} {
		h := lateCount().history(t)
		h.Skews = skews
		holdsPromises(t, h)
	}
}

// TestAClockThatIsDaysWrongShows makes sure that workers' clocks reach the
// tables: a tombstone that is too old as soon as it is written keeps no sleeper away.
func TestAClockThatIsDaysWrongShows(t *testing.T) {
	h := lateCount().history(t)
	h.Skews = []time.Duration{-9 * 24 * time.Hour}
	o := inBubble(t, h, false)
	if !slices.ContainsFunc(o.Problems, func(p string) bool { return strings.HasPrefix(p, "drift: ") }) {
		t.Errorf("a worker that is nine days behind leaves %q, want a count of what is gone", o.Problems)
	}
}

// TestWorkersOfAHistoryHaveClocksOfTheirOwn looks at what is drawn.
func TestWorkersOfAHistoryHaveClocksOfTheirOwn(t *testing.T) {
	right, ahead, behind := 0, 0, 0
	for seed := uint64(0); seed < 200 && min(right, ahead, behind) < 50; seed++ {
		for _, skew := range append(Draw(seed).Skews, 0) {
			switch {
			case skew == 0:
				right++
			case skew > time.Minute && skew <= skewMax:
				ahead++
			case skew < -time.Minute && skew >= -skewMax:
				behind++
			}
		}
	}
	if min(right, ahead, behind) < 50 {
		t.Errorf("%d clocks are right, %d minutes ahead and %d behind: want some of each", right, ahead, behind)
	}
}
