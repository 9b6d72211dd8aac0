// The race detector multiplies the memory that these tests measure, and their time.

//go:build !race

package verify_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/projections/audits"
	"github.com/dynamill/dynamill/internal/proof/oracle"
	"github.com/dynamill/dynamill/internal/proof/population"
	"github.com/dynamill/dynamill/internal/replay/verify"
)

// heap is how large the heap was at most: what the collector let it grow to before
// it was to be collected again, and what was in use.
type heap struct{ goal, used uint64 }

// collectsAtOnce reports whether this process stops while the collector works, and collects when the heap has doubled.
// Otherwise it runs the test once more, in a process that does: a collector that works
// beside a busy machine comes late, and takes for live what was made meanwhile; and with the GOGC of
// "make test" the heap may grow to many times what is live.
func collectsAtOnce(t *testing.T) bool {
	t.Helper()
	const setting = "gcstoptheworld=1"
	if strings.Contains(os.Getenv("GODEBUG"), setting) && os.Getenv("GOGC") == "100" {
		return true
	}
	again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	again.Env = append(os.Environ(), "GODEBUG="+setting, "GOGC=100")
	out, err := again.CombinedOutput()
	t.Logf("%s", out)
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("in a process of its own: %v", err)
	}
	return false
}

// peakHeap samples the heap until it is told to stop.
func peakHeap() (stop func() heap) {
	runtime.GC()
	var peak heap
	samples := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}, {Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"}}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			metrics.Read(samples)
			peak.goal = max(peak.goal, samples[0].Value.Uint64())
			peak.used = max(peak.used, samples[1].Value.Uint64()+samples[2].Value.Uint64())
			select {
			case <-done:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	return func() heap { close(done); <-ended; return peak }
}

func TestMemoryIsBounded(t *testing.T) {
	if !collectsAtOnce(t) {
		return
	}
	users, memory, most := 25_000, 16<<20, uint64(32<<20)
	soak := os.Getenv("DYNAMILL_SOAK") != ""
	if soak {
		users, memory, most = 200_000, 128<<20, 200<<20
	}
	p, err := population.New("club", clubRules, projections.Kinds)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, p, 1)
	w.follow()
	incarnation := ""
	for _, row := range w.scan("app-dynamill") {
		if row["sk"].Text() == "table" {
			incarnation = row["incarnation"].Text()
		}
	}
	items, rows := club(users, incarnation)
	stop := peakHeap()
	began := time.Now()
	found, summary := w.verify(false, func(cfg *verify.Config) {
		cfg.Items, cfg.Rows, cfg.MemoryBytes = items, rows, memory
	})
	peak := stop()
	t.Logf("%d items and %d rows in %s: the heap was let grow to %d MB, %d MB were in use, %d MB in temporary files",
		summary.Items, summary.Rows, time.Since(began).Round(time.Millisecond), peak.goal>>20, peak.used>>20, summary.TempBytes>>20)
	if summary.Suspects > 0 || len(found) > 0 {
		t.Errorf("%d suspects, %d found, in a table that is right", summary.Suspects, len(found))
	}
	if peak.goal > most || soak && peak.used > most {
		t.Errorf("the heap was let grow to %d MB, %d MB were in use; at most %d MB are allowed", peak.goal>>20, peak.used>>20, most>>20)
	}
	if int(summary.Items) < 5*users || summary.TempBytes < int64(users)*500 {
		t.Errorf("too little was looked at: %+v", summary)
	}
}

// wrongEntries finds every ledger entry of a club to be missing.
type wrongEntries struct {
	*audits.Audit
	most atomic.Int64 // suspects that were read at once
}

func (a *wrongEntries) Read(_ context.Context, suspects []drift.Suspect) ([]drift.Reading, error) {
	a.most.Store(max(a.most.Load(), int64(len(suspects))))
	all := make([]drift.Reading, len(suspects))
	for i, s := range suspects {
		if all[i].Suspect = s; s.Kind != drift.Entry {
			continue
		}
		group := "GROUP" + s.Item.Sort[len("GROUP"):] + "/METADATA"
		all[i] = drift.Reading{
			Suspect: s, State: change.Digest(change.String(s.Item.String())), Concerns: []string{drift.KeyToken(s.Item)},
			Findings: []drift.Finding{{Rule: "member-count", Kind: drift.Entry, What: drift.Missing, Item: s.Item}},
			Fix:      drift.Fix{Keys: []change.Key{s.Item}, Adjust: []drift.Amount{{Rule: oracle.RuleID("member-count"), Group: group, Value: "1"}}},
		}
	}
	return all, nil
}

func TestMemoryIsBoundedWhereMuchIsWrong(t *testing.T) {
	if !collectsAtOnce(t) {
		return
	}
	w := worldOf(t, "club", clubRules)
	w.follow()
	items, rows := club(30_000, "other")
	rows.give = func(i int, emit func(change.Item) error) error {
		if groups := 3000; i < groups { // no entries, and accumulators that hold nothing
			sum := texts("pk", fmt.Sprintf("sum/"+oracle.RuleID("member-count")+"/GROUP#%d%%2FMETADATA/0", i), "sk", "a")
			sum["value"], sum["members"], sum["ops"] = change.Number("0"), change.Number("0"), change.Number("9")
			return emit(sum)
		}
		return nil
	}
	audit := &wrongEntries{Audit: w.audit()}
	stop := peakHeap()
	_, summary := w.verify(false, func(cfg *verify.Config) {
		cfg.Items, cfg.Rows, cfg.Auditor, cfg.MemoryBytes = items, rows, audit, 16<<20
		cfg.Found = func(verify.Result) error { return nil }
	})
	peak := stop()
	t.Logf("%d suspects, found %v: at most %d MB of heap in use", summary.Suspects, summary.Found, peak.used>>20)
	if summary.Found[drift.Entry] != 60_000 || summary.Found[drift.Sum] != 3000 {
		t.Errorf("found %v, undecided %v", summary.Found, summary.Undecided)
	}
	if audit.most.Load() > 10_000 || peak.goal > 100<<20 {
		t.Errorf("%d suspects were read at once, and the heap was let grow to %d MB", audit.most.Load(), peak.goal>>20)
	}
}
