package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"syscall"
	"time"
)

// endpointVariable names what scripts/with-endpoints sets.
const endpointVariable = "DYNAMILL_TEST_ENDPOINT"

// readMax bounds one reading of the stream.
const readMax = 5 * time.Minute

type options struct {
	records int
	rounds  int
	warmups int
	only    string
	json    bool
	profile string
	bounds  bounds
}

func main() {
	var o options
	flag.IntVar(&o.records, "records", 50_000, "how many records the stream holds")
	flag.IntVar(&o.rounds, "rounds", 11, "how many rounds count")
	flag.IntVar(&o.warmups, "warmups", 1, "how many rounds come before them and do not count")
	flag.StringVar(&o.only, "only", "", "read with these only, separated by commas: "+strings.Join(names(contestants), ", "))
	flag.BoolVar(&o.json, "json", false, "report as JSON")
	flag.StringVar(&o.profile, "cpuprofile", "", "write a CPU profile of all rounds to this file; best with -only")
	flag.Float64Var(&o.bounds.ofBare, "of-bare-min", 0.85, "least share of the bare loop's throughput that dynamill must reach")
	flag.Float64Var(&o.bounds.ofRedpanda, "of-redpanda-min", 1, "least multiple of Redpanda Connect's throughput that dynamill must reach")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "reading:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	if o.records < 1 || o.rounds < 1 || o.warmups < 0 {
		return errors.New("-records and -rounds must be at least 1, -warmups at least 0")
	}
	chosen, err := choose(o.only)
	if err != nil {
		return err
	}
	endpoint := os.Getenv(endpointVariable)
	if endpoint == "" {
		return fmt.Errorf("%s is not set: start this by scripts/with-endpoints", endpointVariable)
	}
	src, err := newSource(ctx, endpoint, o.records)
	if err != nil {
		return err
	}
	defer src.remove(src.table)
	began := time.Now()
	if err := src.fill(ctx); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "wrote %d records in %s\n", o.records, time.Since(began).Round(time.Second))

	stopProfile, err := profile(o.profile)
	if err != nil {
		return err
	}
	results, err := measure(ctx, src, chosen, o)
	if err = errors.Join(err, stopProfile()); err != nil {
		return err
	}
	r := newReport(o, results)
	if o.json {
		err = r.writeJSON(os.Stdout)
	} else {
		err = r.writeTable(os.Stdout)
	}
	return errors.Join(err, r.verdict(o.bounds))
}

// profile begins a CPU profile, if there is a file for it, and returns what ends it.
func profile(name string) (stop func() error, err error) {
	if name == "" {
		return func() error { return nil }, nil
	}
	file, err := os.Create(name)
	if err != nil {
		return nil, fmt.Errorf("creating the profile: %w", err)
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, errors.Join(fmt.Errorf("profiling: %w", err), file.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return file.Close()
	}, nil
}

// measure lets all contestants read in turn. Another one begins in each round,
// so that none always follows the same one.
func measure(ctx context.Context, src *source, chosen []contestant, o options) (map[string][]timing, error) {
	results := map[string][]timing{}
	for round := range o.warmups + o.rounds {
		for i := range chosen {
			c := chosen[(round+i)%len(chosen)]
			runtime.GC() // none pays for what the one before has left
			t, err := once(ctx, src, c)
			if err != nil {
				return nil, fmt.Errorf("reading with %s: %w", c.name, err)
			}
			if round < o.warmups {
				continue
			}
			fmt.Fprintf(os.Stderr, "round %d: %-8s %s\n", round-o.warmups+1, c.name, t.total.Round(time.Millisecond))
			results[c.name] = append(results[c.name], t)
		}
	}
	return results, nil
}

// once reads the whole stream.
func once(ctx context.Context, src *source, c contestant) (timing, error) {
	ctx, cancel := context.WithTimeout(ctx, readMax)
	defer cancel()
	progress := src.sidetable() // a name that was never used
	defer src.remove(progress)
	count := newCounter(src.records)
	if err := c.read(ctx, src, progress, count); err != nil {
		return timing{}, err
	}
	return count.timing()
}

// contestant reads a stream until count says that all is there, with progress
// as the name of the table for its leases or checkpoints.
type contestant struct {
	name string
	read func(ctx context.Context, src *source, progress string, count *counter) error
}

var contestants = []contestant{{nameBare, readBare}, {nameDynamill, readDynamill}, {nameRedpanda, readRedpanda}}

const (
	nameBare     = "bare"
	nameDynamill = "dynamill"
	nameRedpanda = "redpanda"
)

func names(of []contestant) []string {
	var all []string
	for _, c := range of {
		all = append(all, c.name)
	}
	return all
}

func choose(only string) ([]contestant, error) {
	if only == "" {
		return contestants, nil
	}
	var chosen []contestant
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(contestants, func(c contestant) bool { return c.name == name })
		if i < 0 {
			return nil, fmt.Errorf("-only: nobody is called %q (%s)", name, strings.Join(names(contestants), ", "))
		}
		chosen = append(chosen, contestants[i])
	}
	return chosen, nil
}
