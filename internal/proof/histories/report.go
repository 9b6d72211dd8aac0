package histories

import (
	"fmt"
	"strings"
	"time"

	"github.com/dynamill/dynamill/internal/proof/adversary"
)

// Report adds up many outcomes.
type Report struct {
	Histories, Wrong      int
	Steps, Calls, Records int
	Repaired              int
	Counts                adversary.Counts
	Rules                 map[string]int // histories by rule set; those that are drawn count as one
	Time                  time.Duration
}

// Add adds one history's outcome.
func (r *Report) Add(h *History, o *Outcome) {
	r.Histories++
	r.Steps += o.Steps
	r.Calls += o.Calls
	r.Records += o.Records
	r.Repaired += o.Repaired
	r.Counts.Add(o.Counts)
	if len(o.Problems) > 0 {
		r.Wrong++
	}
	if r.Rules == nil {
		r.Rules = map[string]int{}
	}
	r.Rules[h.Population.Name]++
}

// String is the report as `make prove` prints it.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d histories, %d wrong, in %v\n", r.Histories, r.Wrong, r.Time.Round(time.Second))
	fmt.Fprintf(&b, "%d steps of applications, %d records delivered, %d calls, %d differences repaired\n", r.Steps, r.Records, r.Calls,
		r.Repaired)
	fmt.Fprintf(&b, "%d rule sets, those that are drawn counted as one\nfaults that struck:\n", len(r.Rules))
	for f, n := range r.Counts {
		fmt.Fprintf(&b, "  %-18s %9d\n", adversary.Fault(f), n)
	}
	return b.String()
}
