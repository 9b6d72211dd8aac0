// Command gotest runs `go test` with its arguments, prints what go test would
// print, and fails where go test alone would pass in silence: when a test was
// skipped, or when no test ran at all. A server that is missing must fail a
// run, not thin it out.
//
// It imports the standard library only.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// stopWait is how long go test may take to end its tests after a signal.
const stopWait = 20 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		os.Exit(1)
	}
}

// run runs go test with the arguments and reports to out as it goes.
func run(ctx context.Context, arguments []string, out io.Writer) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, arguments...)...)
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = stopWait
	events, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("connecting to go test: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting go test: %w", err)
	}
	report := newReport(out)
	readErr := report.read(events)
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("running go test: %w", err)
	}
	return errors.Join(readErr, report.verdict())
}

// event is one line of `go test -json` (go doc test2json).
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Output     string
}

// testName is one test of one package.
type testName struct{ pkg, test string }

// report turns events into the lines that go test prints without -v: the
// output of a test only if it fails, the closing line of every package.
type report struct {
	out     io.Writer
	pending map[testName][]string // output of tests that have not ended
	skipped []string
	ran     int
}

func newReport(out io.Writer) *report {
	return &report{out: out, pending: map[testName][]string{}}
}

// read consumes events until the stream ends. What is not an event is printed as it is.
func (r *report) read(events io.Reader) error {
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil || e.Action == "" {
				fmt.Fprintf(r.out, "%s", line)
			} else {
				r.take(e)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the events of go test: %w", err)
		}
	}
}

func (r *report) take(e event) {
	name := testName{e.Package, e.Test}
	switch e.Action {
	case "output":
		if e.Test != "" {
			r.pending[name] = append(r.pending[name], e.Output)
		} else if e.Output != "PASS\n" { // printed with -v only
			fmt.Fprint(r.out, e.Output)
		}
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "pass":
		if e.Test != "" {
			r.ran++
		}
		delete(r.pending, name)
	case "skip":
		// A skip without a test is a package without test files.
		if e.Test != "" {
			r.skipped = append(r.skipped, e.Package+"."+e.Test+reason(r.pending[name]))
		}
		delete(r.pending, name)
	case "fail":
		if e.Test != "" {
			r.ran++
			r.flush(name)
		} else {
			r.flushPackage(e.Package)
		}
	}
}

// flush prints what a failed test wrote, without the progress lines of -v.
func (r *report) flush(name testName) {
	for _, line := range r.pending[name] {
		if !strings.HasPrefix(line, "=== ") {
			fmt.Fprint(r.out, line)
		}
	}
	delete(r.pending, name)
}

// flushPackage prints the tests that had not ended when their package failed:
// a panic or a timeout ends them without an event of their own.
func (r *report) flushPackage(pkg string) {
	var names []testName
	for name := range r.pending {
		if name.pkg == pkg {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b testName) int { return strings.Compare(a.test, b.test) })
	for _, name := range names {
		r.flush(name)
	}
}

// reason finds the message that a skipped test gave.
func reason(output []string) string {
	for _, line := range output {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") && line != "" {
			return ": " + line
		}
	}
	return ""
}

// verdict is nil if at least one test ran and none was skipped.
func (r *report) verdict() error {
	if len(r.skipped) > 0 {
		return fmt.Errorf("skipped tests count as failed:\n\t%s", strings.Join(r.skipped, "\n\t"))
	}
	if r.ran == 0 {
		return errors.New("no test ran")
	}
	return nil
}
