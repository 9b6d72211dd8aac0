//go:build teeth

package histories

import (
	"fmt"
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
	"LoserHidden": 158, "ShownWhenLive": 10, "SuffixesKept": 44, "ChildUnmoved": 51, "CopyVersion": 7,
	"ConsistentReads": 12, "UnreadChild": 42, "LedgerPosition": 159, "LedgerExact": 1, "ClaimsUnmoved": 1282, "KeyParsed": 5,
	"UnreadVersion": 72, "BatchJudged": 32, "FoldFirst": 38, "FoldZero": 38, "GenerationFrom": 165, "LateRecord": 445, "CountReadsOn": 251,
	"CountGroups": 117, "MendAsRead": 578,
}

// TestEveryGuardIsMissed turns off one guard after the other and looks for a
// history that then breaks a promise: first the one that is named for the
// guard, then random ones. A guard that nothing misses is not proved to be needed.
func TestEveryGuardIsMissed(t *testing.T) {
	if !switches.Installed {
		t.Fatal("this build cannot turn guards off: run make prove, which adds the overlay of internal/proof/mutants")
	}
	for _, g := range guardNames(t) {
		t.Run(g, func(t *testing.T) {
			began := time.Now()
			tried, h, o := missed(t, g)
			if h == nil {
				t.Fatalf("no history out of %d misses it", tried)
			}
			fmt.Printf("%-20s missed by %s after %d histories, %v: %s\n",
				g, nameOf(h), tried, time.Since(began).Round(time.Millisecond), strings.SplitN(o.Problems[0], "\n", 2)[0])
		})
	}
}

// isForm reports whether a problem breaks no promise: a row is not written as
// docs/state-table.md says, or a schedule went another way.
func isForm(problem string) bool {
	return strings.Contains(problem, " a: want ") || strings.HasPrefix(problem, noCall)
}

func nameOf(h *History) string {
	if h.Name != "" {
		return h.Name
	}
	return fmt.Sprintf("seed %d", h.Seed)
}

// missed looks for a history that fails without the guard.
func missed(t *testing.T, g string) (tried int, h *History, o *Outcome) {
	switches.Without(g, func() {
		try := func(candidate *History) bool {
			tried++
			h, o = candidate, inBubble(t, candidate, false)
			o.Problems = slices.DeleteFunc(o.Problems, isForm)
			return len(o.Problems) > 0
		}
		for _, s := range schedules() {
			seeds := uint64(1)
			if s.seed > 0 {
				seeds = seedsMax
			}
			for first, n := s.seed, uint64(0); s.guard == g && n < seeds; n++ {
				if s.seed = first + n; try(s.history(t)) {
					return
				}
			}
		}
		if seed, ok := missedBySeed[g]; ok && try(Draw(seed)) {
			return
		}
		hot := guardsIn(t, "hot.patch")
		for seed := range uint64(histories(t)) {
			candidate := Draw(seed)
			if slices.Contains(hot, g) && len(candidate.Population.Set.Folded()) == 0 {
				continue // no rule counts by stream position
			}
			if try(candidate) {
				return
			}
		}
		h = nil
	})
	return tried, h, o
}
