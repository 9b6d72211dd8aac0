package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// report is what a run comes to. Throughputs are records per second.
type report struct {
	Records int      `json:"records"`
	Rounds  int      `json:"rounds"`
	Results []result `json:"results"`
	// Medians of the ratios of each round's throughputs, in which a machine that
	// is slower for a while slows down both; absent if one did not read.
	OfBare     *float64 `json:"dynamill_of_bare,omitempty"`
	OfRedpanda *float64 `json:"dynamill_of_redpanda,omitempty"`

	diverged string // the contestants that read another last record than the rest
}

type result struct {
	Name    string  `json:"name"`
	Total   float64 `json:"records_per_second"`     // median
	Slowest float64 `json:"records_per_second_min"` // of the rounds
	Fastest float64 `json:"records_per_second_max"`
	Startup float64 `json:"startup_ms"`                     // median, until the first records
	Steady  float64 `json:"records_per_second_after_first"` // median, from the first records to the last
	CPU     float64 `json:"cpu_us_per_record"`              // median, of this process, until the last record
}

// bounds are the least ratios with which a run passes.
type bounds struct{ ofBare, ofRedpanda float64 }

func newReport(o options, results map[string][]timing) report {
	r := report{Records: o.records, Rounds: o.rounds}
	last := ""
	for _, c := range contestants {
		timings := results[c.name]
		if len(timings) == 0 {
			continue
		}
		var total, startup, steady, cpu []float64
		for _, t := range timings {
			total = append(total, float64(o.records)/t.total.Seconds())
			startup = append(startup, float64(t.startup)/float64(time.Millisecond))
			steady = append(steady, t.steady)
			cpu = append(cpu, float64(t.cpu)/float64(time.Microsecond)/float64(o.records))
			if last != "" && t.sequence != last {
				r.diverged = c.name
			}
			last = t.sequence
		}
		r.Results = append(r.Results, result{
			Name: c.name, Total: median(total), Slowest: slices.Min(total), Fastest: slices.Max(total),
			Startup: median(startup), Steady: median(steady), CPU: median(cpu),
		})
	}
	r.OfBare = ratio(results[nameDynamill], results[nameBare])
	r.OfRedpanda = ratio(results[nameDynamill], results[nameRedpanda])
	return r
}

// ratio is how many times as fast the one was as the other, round by round.
func ratio(one, other []timing) *float64 {
	if len(one) == 0 || len(one) != len(other) {
		return nil
	}
	var ratios []float64
	for i := range one {
		ratios = append(ratios, other[i].total.Seconds()/one[i].total.Seconds())
	}
	m := median(ratios)
	return &m
}

// verdict is an error if dynamill is too slow, or if not all have read the same.
func (r report) verdict(least bounds) error {
	var problems []error
	if r.diverged != "" {
		problems = append(problems, fmt.Errorf("%s ended with another record than those before it", r.diverged))
	}
	if r.OfBare != nil && *r.OfBare < least.ofBare {
		problems = append(problems, fmt.Errorf("dynamill reads at %.2f of the bare loop's throughput, less than %.2f", *r.OfBare, least.ofBare))
	}
	if r.OfRedpanda != nil && *r.OfRedpanda < least.ofRedpanda {
		problems = append(problems, fmt.Errorf("dynamill reads at %.2f of Redpanda Connect's throughput, less than %.2f", *r.OfRedpanda,
			least.ofRedpanda))
	}
	return errors.Join(problems...)
}

func (r report) writeJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

func (r report) writeTable(w io.Writer) error {
	fmt.Fprintf(w, "\n%d records, %d rounds; throughput in records per second, medians\n\n", r.Records, r.Rounds)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\tthroughput\tslowest\tfastest\tuntil the first records\tfrom then on\tCPU per record\t")
	for _, one := range r.Results {
		fmt.Fprintf(table, "%s\t%.0f\t%.0f\t%.0f\t%.0f ms\t%.0f\t%.1f µs\t\n", one.Name, one.Total, one.Slowest, one.Fastest, one.Startup,
			one.Steady, one.CPU)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, line := range []struct {
		name  string
		ratio *float64
	}{{"the bare loop", r.OfBare}, {"Redpanda Connect", r.OfRedpanda}} {
		if line.ratio != nil {
			fmt.Fprintf(w, "dynamill / %s: %.2f (median of the rounds' ratios)\n", line.name, *line.ratio)
		}
	}
	return nil
}

// median of at least one value.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}
