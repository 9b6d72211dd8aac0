package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// report becomes the tables of one backend, in Markdown.
type report struct {
	backend string
	rounds  int
	work    []string // lines
	waits   []wait
	rest    rest // if shards is not 0
	shards  int
}

// wait is how long a contender made a change wait.
type wait struct {
	what, name string
	took       []time.Duration
}

const workHead = "| work | contender | time | dynamill takes | write requests | read requests | write units | read units | CPU | " +
	"peak memory | delivered twice |\n|---|---|---|---|---|---|---|---|---|---|---|\n"

// add adds the lines of a workload.
func (r *report) add(load workload, contenders []string, results map[string][]result) {
	for i, name := range contenders {
		work := ""
		if i == 0 {
			work = fmt.Sprintf("%s, %d %s", load.name, load.n, plural(load.unit, load.n))
		}
		all := results[name]
		if len(all) == 0 {
			r.work = append(r.work, fmt.Sprintf("| %s | %s | not served |||||||||", work, name))
			continue
		}
		each := func(of func(result) float64) float64 { return median(all, of) / float64(load.n) }
		r.work = append(r.work, fmt.Sprintf("| %s | %s | %.2f s | %s | %.3f | %.3f | %.2f | %.2f | %.0f µs | %.0f MB | %s |", work, name,
			median(all, func(one result) float64 { return one.Took.Seconds() }),
			ratio(results[nameDynamill], all),
			each(func(one result) float64 { return float64(one.Usage.WriteRequests) }),
			each(func(one result) float64 { return float64(one.Usage.ReadRequests) }),
			each(func(one result) float64 { return one.Usage.WriteUnits }),
			each(func(one result) float64 { return one.Usage.ReadUnits }),
			each(func(one result) float64 { return float64(one.Usage.CPU.Microseconds()) }),
			median(all, func(one result) float64 { return float64(one.Usage.MemoryPeak) / (1 << 20) }),
			twice(load, all)))
	}
}

func plural(unit string, n int) string {
	switch {
	case n == 1:
		return unit
	case unit == "child":
		return "children"
	}
	return unit + "s"
}

// ratio is how many times as long dynamill took as another contender: the median of the rounds' ratios, in
// which a machine that is slower for a while slows down both.
func ratio(dynamill, other []result) string {
	if len(dynamill) != len(other) {
		return ""
	}
	var ratios []float64
	for i := range other {
		ratios = append(ratios, dynamill[i].Took.Seconds()/other[i].Took.Seconds())
	}
	return fmt.Sprintf("%.2f ×", median(ratios, func(one float64) float64 { return one }))
}

// twice says what a second delivery came to.
func twice(load workload, all []result) string {
	for _, one := range all {
		switch one.Twice {
		case notTried:
		case 0:
			return "right"
		default:
			return fmt.Sprintf("**%d of %d wrong**", one.Twice, len(load.wanted))
		}
	}
	return ""
}

// wait takes times of a contender; those of all rounds go together.
func (r *report) wait(what, name string, took ...time.Duration) {
	at := slices.IndexFunc(r.waits, func(w wait) bool { return w.what == what && w.name == name })
	if at < 0 {
		at = len(r.waits)
		r.waits = append(r.waits, wait{what: what, name: name})
	}
	r.waits[at].took = append(r.waits[at].took, took...)
}

// write writes the tables.
func (r *report) write(out io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "\n%s, medians of %d rounds; requests, units and CPU for each record, child or source\n\n", r.backend, r.rounds)
	if len(r.work) > 0 {
		text.WriteString(workHead + strings.Join(r.work, "\n") + "\n\n")
	}
	if len(r.waits) > 0 {
		text.WriteString("| wait | contender | p50 | p99 | times taken |\n|---|---|---|---|---|\n")
		slices.SortFunc(r.waits, func(a, b wait) int { return cmp.Or(cmp.Compare(a.what, b.what), -cmp.Compare(a.name, b.name)) })
		for _, w := range r.waits {
			slices.Sort(w.took)
			fmt.Fprintf(&text, "| %s | %s | %d ms | %d ms | %d |\n", w.what, w.name,
				percentile(w.took, 0.5).Milliseconds(), percentile(w.took, 0.99).Milliseconds(), len(w.took))
		}
	}
	if r.shards > 0 {
		fmt.Fprintf(&text, "\n%d shards, each second: idle %d ms of CPU time, %d GetRecords, %d requests to the lease table; "+
			"with %d records %d ms of CPU time. Peak memory %d MB.\n", r.shards, r.rest.idle.CPU.Milliseconds(), r.rest.idle.Polls,
			r.rest.idle.LeaseRequests, busyRecords, r.rest.busy.CPU.Milliseconds(), r.rest.memory>>20)
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// percentile of at least one sorted value.
func percentile(sorted []time.Duration, share float64) time.Duration {
	return sorted[min(int(share*float64(len(sorted))), len(sorted)-1)]
}

// median of a figure of at least one value.
func median[T any](values []T, figure func(T) float64) float64 {
	var sorted []float64
	for _, v := range values {
		sorted = append(sorted, figure(v))
	}
	slices.Sort(sorted)
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}
