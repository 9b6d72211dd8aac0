package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

type options struct {
	rounds, records, counters, children, sources, lone, busy, shards int

	backends, workloads, only          string
	lambdaStream                       string // the folder of Node.js modules with aws-lambda-stream; "": it is left out
	poll, quiet, look, runMax, lasting time.Duration
	uniform                            time.Duration
	delays                             delays
}

// workloadNames are what -workloads chooses from.
var workloadNames = []string{"count", "rename", "fill", "mirror", workLatency, workStartup, workIdle}

const (
	workLatency = "latency"
	workStartup = "start-up"
	workIdle    = "idle"
)

func main() {
	if err := mode(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

// mode runs what the arguments ask for: one of the processes that this program starts, or a benchmark.
func mode(arguments []string) error {
	switch {
	case len(arguments) == 1 && arguments[0] == modeContender:
		return contend(os.Stdin, os.Stdout)
	case len(arguments) == 1 && arguments[0] == modeSimulator:
		return simulate(os.Stdin, os.Stdout)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return benchmark(ctx, arguments, os.Stdout)
}

func parse(arguments []string) (o options, err error) {
	o.delays = assumedDelays()
	set := flag.NewFlagSet("peers", flag.ContinueOnError)
	set.StringVar(&o.backends, "backends", backendSimulator,
		"where to measure, separated by commas: "+strings.Join([]string{backendSimulator, backendDynoxide, backendLocal}, ", "))
	set.StringVar(&o.workloads, "workloads", strings.Join(workloadNames, ","), "what to measure")
	set.StringVar(&o.only, "only", "", "measure the contenders alone whose names hold this text")
	set.StringVar(&o.lambdaStream, "lambda-stream", os.Getenv("DYNAMILL_LAMBDA_STREAM"),
		"the `folder` of Node.js modules that holds aws-lambda-stream; default: it does not take part")
	set.IntVar(&o.rounds, "rounds", 3, "how many rounds there are; the medians of them count")
	set.IntVar(&o.records, "records", 10_000, "how many records are counted")
	set.IntVar(&o.counters, "counters", 100, "into how many counters")
	set.IntVar(&o.children, "children", 5_000, "how many children a parent has")
	set.IntVar(&o.sources, "sources", 2_000, "how many sources are mirrored")
	set.IntVar(&o.lone, "lone", 30, "how many writes a round of the latency at 1 write a second has")
	set.IntVar(&o.busy, "busy", 2_000, "how many writes a round of the latency at 200 writes a second has")
	set.IntVar(&o.shards, "shards", 1_000, "how many shards dynamill follows at the simulator when they are idle")
	set.DurationVar(&o.lasting, "lasting", 30*time.Second, "how long they are idle, and then have records")
	set.DurationVar(&o.poll, "poll", 250*time.Millisecond,
		"how long a handler's reader waits at the end of a shard; Lambda asks four times a second")
	set.DurationVar(&o.quiet, "quiet", 1500*time.Millisecond, "how long a contender has written and read nothing when it is taken to be done")
	set.DurationVar(&o.look, "look", 20*time.Millisecond, "how often this program looks for derived values")
	set.DurationVar(&o.runMax, "run-max", 15*time.Minute, "how long one run may take")
	set.DurationVar(&o.uniform, "latency-delay", 5*time.Millisecond, "how long each request takes at the simulator when latency is measured")
	o.delays.flags(set)
	if err := set.Parse(arguments); err != nil {
		return o, err
	}
	if set.NArg() > 0 {
		return o, fmt.Errorf("%q is no flag", set.Arg(0))
	}
	if min(o.rounds, o.records, o.counters, o.children, o.sources, o.lone, o.busy, o.shards) < 1 {
		return o, errors.New("numbers must be at least 1")
	}
	return o, errors.Join(
		known("-workloads", o.workloads, workloadNames),
		known("-backends", o.backends, []string{backendSimulator, backendDynoxide, backendLocal}),
	)
}

// known refuses a list with names that do not exist.
func known(flag, list string, names []string) error {
	for name := range strings.SplitSeq(list, ",") {
		if !slices.Contains(names, name) {
			return fmt.Errorf("%s: %q is none of %s", flag, name, strings.Join(names, ", "))
		}
	}
	return nil
}

// benchmark measures everything that the arguments ask for and writes a table for each backend.
func benchmark(ctx context.Context, arguments []string, out io.Writer) error {
	o, err := parse(arguments)
	if err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	chosen := strings.Split(o.workloads, ",")
	for backend := range strings.SplitSeq(o.backends, ",") {
		r := report{backend: backend, rounds: o.rounds}
		for _, load := range []workload{counting(o.records, o.counters), renaming(o.children), filling(o.children), mirroring(o.sources)} {
			if !slices.Contains(chosen, load.name) {
				continue
			}
			results, err := o.rounded(ctx, backend, load)
			if err != nil {
				return fmt.Errorf("%s at %s: %w", load.name, backend, err)
			}
			r.add(load, o.contenders(load), results)
		}
		if err := o.waits(ctx, backend, chosen, &r); err != nil {
			return fmt.Errorf("at %s: %w", backend, err)
		}
		if slices.Contains(chosen, workIdle) && backend == backendSimulator {
			if r.rest, err = o.resting(ctx); err != nil {
				return fmt.Errorf("with %d shards: %w", o.shards, err)
			}
			r.shards = o.shards
		}
		if err := r.write(out); err != nil {
			return err
		}
	}
	return nil
}

// contenders are those of a workload that are to be measured.
func (o options) contenders(load workload) []string {
	all := slices.Clone(load.contenders)
	if o.lambdaStream != "" && load.name != "" {
		all = append(all, nameLambdaStream)
	}
	return slices.DeleteFunc(all, func(name string) bool { return !strings.Contains(name, o.only) })
}

// rounded has all contenders do a workload in turn; another one begins in each round. The results of a
// contender that the endpoint does not serve are missing.
func (o options) rounded(ctx context.Context, backend string, load workload) (map[string][]result, error) {
	results := map[string][]result{}
	contenders := o.contenders(load)
	for round := range o.rounds {
		for i := range contenders {
			name := contenders[(round+i)%len(contenders)]
			r, err := o.run(ctx, backend, load, name, round == 0)
			if errors.Is(err, errNotServed) {
				fmt.Fprintf(os.Stderr, "%s, %s: not served\n", load.name, name)
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			fmt.Fprintf(os.Stderr, "%s, round %d: %s: %v\n", load.name, round+1, name, r.Took.Round(time.Millisecond))
			results[name] = append(results[name], r)
		}
	}
	return results, nil
}

// waits measures latency and start-up, dynamill beside the handler that puts each mirror item.
func (o options) waits(ctx context.Context, backend string, chosen []string, r *report) error {
	if !slices.Contains(chosen, workLatency) && !slices.Contains(chosen, workStartup) {
		return nil
	}
	contenders := o.contenders(workload{contenders: []string{nameDynamill, "PutItem, 16 at once"}})
	for round := range o.rounds {
		for i := range contenders {
			name := contenders[(round+i)%len(contenders)]
			if slices.Contains(chosen, workLatency) {
				for _, at := range []struct{ everySecond, writes int }{{1, o.lone}, {200, o.busy}} {
					took, err := o.latencies(ctx, backend, mirroring(at.writes), name, at.everySecond)
					if err != nil {
						return fmt.Errorf("latency of %s: %w", name, err)
					}
					r.wait(fmt.Sprintf("write to visible, %d a second", at.everySecond), name, took...)
				}
			}
			if slices.Contains(chosen, workStartup) {
				cold, restart, err := o.startups(ctx, backend, name)
				if err != nil {
					return fmt.Errorf("start-up of %s: %w", name, err)
				}
				r.wait("first start to visible", name, cold)
				r.wait("restart to visible", name, restart)
			}
			fmt.Fprintf(os.Stderr, "waits, round %d: %s\n", round+1, name)
		}
	}
	return nil
}
