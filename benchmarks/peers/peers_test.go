package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dynamill/dynamill/internal/sim/emulator"
)

// TestMain lets the test's executable be the processes that the benchmark starts.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && (os.Args[1] == modeContender || os.Args[1] == modeSimulator) {
		main()
		return
	}
	os.Exit(m.Run())
}

// All contenders do all workloads, in small, wherever the benchmark can run.
func TestEveryContenderDoesItsWork(t *testing.T) {
	backends := []string{backendSimulator}
	if _, ok := emulator.Exact(t); ok {
		backends = append(backends, backendDynoxide)
	}
	emulator.Local(t)
	for _, backend := range append(backends, backendLocal) {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			contest(t, backend)
		})
	}
}

func contest(t *testing.T, backend string) {
	var out bytes.Buffer
	err := benchmark(t.Context(), []string{
		"-backends", backend, "-rounds", "1", "-records", "60", "-counters", "2", "-children", "30", "-sources", "30", "-lone", "1",
		"-busy", "20", "-quiet", "300ms", "-poll", "20ms", "-shards", "20", "-lasting", "1s",
	}, &out)
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string][]string{} // the cells by the contender's name and the work before it
	work := ""
	for line := range strings.Lines(out.String()) {
		cells := strings.Split(line, " | ")
		if len(cells) < 3 {
			continue
		}
		if name := strings.Trim(cells[0], "| "); name != "" {
			work, _, _ = strings.Cut(name, ", ")
		}
		lines[work+": "+strings.TrimSpace(cells[1])] = cells
	}
	for line, twice := range map[string]string{
		"count: dynamill": "right", "count: bare ADD, 16 at once": "**2 of 2 wrong**", "count: ADD of each batch's sums": "**2 of 2 wrong**",
		"count: claim and ADD in a transaction": "right", "rename: dynamill": "right", "rename: dynamill, by references": "right",
		"rename: UpdateItem, 16 at once": "right", "rename: BatchExecuteStatement of 25": "right", "fill: dynamill": "right",
		"fill: dynamill, by references": "right", "fill: UpdateItem, 16 at once": "right", "fill: BatchExecuteStatement of 25": "right",
		"count: " + nameLambdaStream: "**2 of 2 wrong**", "rename: " + nameLambdaStream: "right", "fill: " + nameLambdaStream: "right",
		"mirror: " + nameLambdaStream: "right",
		"mirror: dynamill":            "right", "mirror: PutItem, 16 at once": "right", "mirror: BatchWriteItem of 25": "right",
	} {
		cells, ok := lines[line]
		if !ok && strings.HasSuffix(line, nameLambdaStream) && os.Getenv("DYNAMILL_LAMBDA_STREAM") == "" {
			continue // make bench-peers installs it
		}
		switch {
		case !ok:
			t.Errorf("no line %q in\n%s", line, out.String())
		case strings.HasPrefix(cells[2], "not served"):
			t.Errorf("%s: not served", line)
		case !strings.HasPrefix(cells[len(cells)-1], twice+" |"):
			t.Errorf("%s: delivered twice %q, want %q", line, cells[len(cells)-1], twice)
		}
	}
	if cells := lines["count: claim and ADD in a transaction"]; len(cells) > 6 && backend != backendLocal && cells[6] != "4.00" {
		t.Errorf("a claim and an ADD cost %s units, want 4.00", cells[6]) // DynamoDB Local bills their sum
	}
	if backend == backendSimulator && !strings.Contains(out.String(), "20 shards, each second: idle ") {
		t.Errorf("nothing about shards that are idle in\n%s", out.String())
	}
	for _, wait := range []string{
		"write to visible: dynamill", "first start to visible: dynamill", "restart to visible: PutItem, 16 at once",
	} {
		if _, ok := lines[wait]; !ok {
			t.Errorf("no line %q in\n%s", wait, out.String())
		}
	}
}

func TestRatiosAreTakenRoundByRound(t *testing.T) {
	of := func(seconds ...int) (all []result) {
		for _, s := range seconds {
			all = append(all, result{Took: time.Duration(s) * time.Second})
		}
		return all
	}
	// The machine was ten times as slow in the second round, for both alike.
	if got := ratio(of(2, 20, 2), of(4, 40, 1)); got != "0.50 ×" {
		t.Errorf("got %s, want 0.50 ×", got)
	}
}

func TestUnknownNamesAreRefused(t *testing.T) {
	for _, arguments := range [][]string{{"-backends", "none"}, {"-workloads", "count,none"}, {"-rounds", "0"}, {"none"}} {
		if _, err := parse(arguments); err == nil {
			t.Errorf("%v: no error", arguments)
		}
	}
}
