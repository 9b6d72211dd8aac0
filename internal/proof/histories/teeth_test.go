//go:build teeth

package histories

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dynamill/dynamill/internal/proof/mutants/switches"
)

// historiesMax is how many random histories a guard may go unmissed.
const historiesMax = 2000

// seedsMax is how many seeds are tried with a schedule that leaves something to its seed.
const seedsMax = 50

// histories is how many are tried now.
func histories(t *testing.T) int { return number(t, "DYNAMILL_SEEDS", historiesMax) }

// missedBySeed are histories that miss a guard, found by trying seeds in order.
// They save the search; if one no longer does, the search begins anew.
var missedBySeed = map[string]uint64{
	"LoserHidden": 380, "ShownWhenLive": 10, "SuffixesKept": 44, "ChildUnmoved": 51, "CopyVersion": 3, "ConsistentReads": 7,
	"UnreadChild": 42, "LedgerPosition": 164, "LedgerExact": 1, "KeyParsed": 22, "UnreadVersion": 72, "BatchJudged": 32,
	"FoldFirst": 38, "FoldZero": 38, "GenerationFrom": 165, "CountGroups": 117,
	"CountScan": 205, "CountOverlay": 41, "CountInOrder": 70, "LaneOfShard": 41, "LaneOneHeir": 254,
}

// TestEveryGuardIsMissed turns off one guard after the other, and looks for a
// history that then breaks a promise: each schedule that is named for the
// guard, or, if there is none, a random one. A guard that nothing misses is
// not proved to be needed, and a schedule that does not miss its guard shows nothing.
func TestEveryGuardIsMissed(t *testing.T) {
	if !switches.Installed {
		t.Fatal("this build cannot turn guards off: run make prove, which adds the overlay of internal/proof/mutants")
	}
	for _, g := range guardNames(t) {
		t.Run(g, func(t *testing.T) {
			scheduled := slices.DeleteFunc(schedules(), func(s schedule) bool { return s.guard != g })
			for _, s := range scheduled {
				search(t, g, fmt.Sprintf("schedule %q", s.name), s.candidates(t))
			}
			if len(scheduled) == 0 {
				search(t, g, "random history", randomCandidates(t, g))
			}
		})
	}
}

// search turns the guard off and fails the test unless one of the histories then breaks a promise.
func search(t *testing.T, guard, kind string, candidates iter.Seq[*History]) {
	began, tried := time.Now(), 0
	switches.Without(guard, func() {
		for h := range candidates {
			tried++
			o := inBubble(t, h, false)
			if problems := slices.DeleteFunc(o.Problems, isForm); len(problems) > 0 {
				fmt.Printf("%-20s missed by %s after %d histories, %v: %s\n",
					guard, nameOf(h), tried, time.Since(began).Round(time.Millisecond), strings.SplitN(problems[0], "\n", 2)[0])
				return
			}
		}
		t.Errorf("no %s misses it: %d tried", kind, tried)
	})
}

// candidates are the schedule's history, with several seeds if it leaves something to its seed.
func (s schedule) candidates(t *testing.T) iter.Seq[*History] {
	return func(yield func(*History) bool) {
		seeds := uint64(1)
		if s.seed > 0 {
			seeds = seedsMax
		}
		for range seeds {
			if !yield(s.history(t)) {
				return
			}
			s.seed++
		}
	}
}

// randomCandidates are the history that is known to miss a guard, and then those of other seeds.
func randomCandidates(t *testing.T, guard string) iter.Seq[*History] {
	return func(yield func(*History) bool) {
		if seed, ok := missedBySeed[guard]; ok && !yield(Draw(seed)) {
			return
		}
		hot := slices.Contains(guardsIn(t, "hot.patch"), guard)
		for seed := range uint64(histories(t)) {
			h := Draw(seed)
			if hot && len(h.Population.Set.Folded()) == 0 {
				continue // no rule counts by stream position
			}
			if !yield(h) {
				return
			}
		}
	}
}

// isForm reports whether a problem breaks no promise: a row is not written as
// docs/state-table.md says, or a schedule went another way.
func isForm(problem string) bool {
	return strings.Contains(problem, " a: want ") || strings.Contains(problem, " lane: want ") || strings.HasPrefix(problem, noCall)
}

func nameOf(h *History) string {
	if h.Name != "" {
		return h.Name
	}
	return fmt.Sprintf("seed %d", h.Seed)
}
