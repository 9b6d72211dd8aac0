package histories

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynamill/dynamill/internal/sim/worldsize"
)

// number is a setting from the environment.
func number(t *testing.T, name string, otherwise int) int {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// inBubble runs a history in a bubble of its own.
func inBubble(t *testing.T, h *History, trace bool) (o *Outcome) {
	synctest.Test(t, func(*testing.T) { o = Run(h, trace) })
	return o
}

// TestPromisesHoldInSeededHistories is the proof. DYNAMILL_SEEDS says how many
// histories, DYNAMILL_SEED where to begin.
func TestPromisesHoldInSeededHistories(t *testing.T) {
	histories, first := number(t, "DYNAMILL_SEEDS", worldsize.Of(12, 6)), number(t, "DYNAMILL_SEED", 0)
	var next atomic.Int64
	var mu sync.Mutex
	var report Report
	began := time.Now()
	t.Run("seeds", func(t *testing.T) {
		for i := range runtime.GOMAXPROCS(0) {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				for {
					n := int(next.Add(1)) - 1
					if n >= histories || t.Failed() {
						return
					}
					h := Draw(uint64(first + n))
					o := inBubble(t, h, false)
					mu.Lock()
					report.Add(h, o)
					mu.Unlock()
					if len(o.Problems) > 0 {
						explain(t, h, o)
					}
				}
			})
		}
	})
	report.Time = time.Since(began)
	if report.Histories == 0 {
		t.Error("no history was lived through: DYNAMILL_SEEDS must be at least 1")
	}
	fmt.Print(report)
}

// shrinkTime is how long a shorter failing history is looked for.
const shrinkTime = 30 * time.Second

// explain fails the test with the shortest failing history that can be found, and all that happened in it.
func explain(t *testing.T, h *History, o *Outcome) {
	t.Helper()
	fails := func(h *History) bool { return len(inBubble(t, h, false).Problems) > 0 }
	if !fails(h) {
		t.Errorf("seed %d failed once and not again, so something is left to chance: %q", h.Seed, o.Problems)
		return
	}
	h = Shrink(h, fails, shrinkTime)
	o = inBubble(t, h, true)
	t.Errorf("a history that breaks a promise:\n%s", h)
	for _, line := range o.Trace {
		t.Log(line)
	}
	for _, p := range o.Problems {
		t.Error(p)
	}
}

// TestASeedReplaysExactly runs histories twice and compares all that happens in them.
func TestASeedReplaysExactly(t *testing.T) {
	for seed := range uint64(number(t, "DYNAMILL_REPLAYS", worldsize.Of(20, 3))) {
		one, other := anonymous(inBubble(t, Draw(seed), true)), anonymous(inBubble(t, Draw(seed), true))
		for i := range min(len(one), len(other)) {
			if one[i] != other[i] {
				t.Fatalf("seed %d, event %d:\n%s\n%s", seed, i, one[i], other[i])
			}
		}
		if len(one) != len(other) {
			t.Fatalf("seed %d: %d events, then %d", seed, len(one), len(other))
		}
	}
}

// randomText are digests and names of parkings, and the contexts of stamps (which contain the state
// table's incarnation): drawn anew in every run.
var randomText = regexp.MustCompile(`\b([0-9a-f]{16})\b|\b_dm_[-\w]+"?(?:,| BETWEEN| [<>]?=| [<>]|=) ?([-\w]{8})`)

// anonymous replaces what is random by the order in which it first appears.
func anonymous(o *Outcome) []string {
	var events, names []string
	known := map[string]bool{}
	for _, event := range o.Trace {
		if strings.HasPrefix(event, inTheEnd) { // sorted by what is random, among others
			continue
		}
		events = append(events, event)
		for _, found := range randomText.FindAllStringSubmatch(event, -1) {
			if text := found[1] + found[2]; !known[text] {
				known[text], names = true, append(names, text, fmt.Sprintf("~%d~", len(known)))
			}
		}
	}
	replacer := strings.NewReplacer(names...)
	for i, event := range events {
		events[i] = replacer.Replace(event)
	}
	return events
}
