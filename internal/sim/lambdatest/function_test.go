package lambdatest

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

func newFunction(t *testing.T, fates ...Fate) *Function {
	var mu sync.Mutex
	f := &Function{Command: obedient, Timeout: 5 * time.Second, Fate: func([]byte) (next Fate) {
		mu.Lock()
		defer mu.Unlock()
		if len(fates) > 0 {
			next, fates = fates[0], fates[1:]
		}
		return next
	}}
	t.Cleanup(f.Close)
	return f
}

func (f *Function) reports(t *testing.T, o order) report {
	t.Helper()
	answer, err := f.Invoke(t.Context(), orders(t, o))
	if err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(answer, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func (f *Function) fails(t *testing.T, o order, kind string) *FunctionError {
	t.Helper()
	_, err := f.Invoke(t.Context(), orders(t, o))
	var failed *FunctionError
	if !errors.As(err, &failed) || !strings.Contains(failed.Type, kind) {
		t.Fatalf("the invocation ended with %v, want a FunctionError of the type %s", err, kind)
	}
	return failed
}

func TestAnEnvironmentIsUsedAgainAndToldItsDeadline(t *testing.T) {
	f := newFunction(t)
	before := time.Now()
	one, two := f.reports(t, order{}), f.reports(t, order{})
	if one.PID != two.PID {
		t.Errorf("processes %d and %d, want the same", one.PID, two.PID)
	}
	if left := one.Deadline.Sub(before); left < 4*time.Second || left > 10*time.Second {
		t.Errorf("the deadline is %s after the call", left)
	}
	f.fails(t, order{Do: "fail"}, "errorString")
	if three := f.reports(t, order{}); three.PID != one.PID {
		t.Error("a function error cost the environment")
	}
}

func TestInvocationsAtOnceHaveEnvironmentsOfTheirOwn(t *testing.T) {
	f := newFunction(t)
	f.ConcurrencyMax = 2
	var all sync.WaitGroup
	var mu sync.Mutex
	seen := map[int]int{}
	for range 4 {
		all.Go(func() {
			r := f.reports(t, order{For: 300 * time.Millisecond})
			mu.Lock()
			defer mu.Unlock()
			seen[r.PID]++
		})
	}
	all.Wait()
	if len(seen) != 2 {
		t.Errorf("%d processes did the work, want 2", len(seen))
	}
}

func TestAnEnvironmentThatDiesIsReplaced(t *testing.T) {
	f := newFunction(t, Fate{}, Fate{}, Fate{Kind: Kill, After: 50 * time.Millisecond}, Fate{}, Fate{Timeout: 50 * time.Millisecond})
	one := f.reports(t, order{})
	if failed := f.fails(t, order{Do: "exit"}, "Runtime.ExitError"); !strings.Contains(failed.Message, "exit status 7") {
		t.Errorf("it says %s", failed.Message)
	}
	f.fails(t, order{For: time.Minute}, "Runtime.ExitError")
	two := f.reports(t, order{})
	f.fails(t, order{For: time.Minute}, "Sandbox.Timedout")
	three := f.reports(t, order{})
	if one.PID == two.PID || two.PID == three.PID {
		t.Errorf("processes %d, %d, %d", one.PID, two.PID, three.PID)
	}
	if c := f.Counts(); c.Started != 4 || c.Killed != 1 || c.Failed != 3 {
		t.Errorf("counts: %s", c)
	}
}

func TestAProcessIsFrozenBetweenInvocations(t *testing.T) {
	f := newFunction(t)
	pid := f.reports(t, order{}).PID
	state := func() string {
		status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		if errors.Is(err, os.ErrNotExist) {
			return "T" // no /proc here: it cannot be seen
		}
		if err != nil {
			t.Fatal(err)
		}
		_, after, _ := strings.Cut(string(status), ") ")
		return after[:1]
	}
	for until := time.Now().Add(2 * time.Second); state() != "T"; time.Sleep(time.Millisecond) {
		if time.Now().After(until) { // a signal takes a moment
			t.Fatalf("the state of the process is %s, want T", state())
		}
	}
}

func TestAPausedInvocationGoesOn(t *testing.T) {
	f := newFunction(t, Fate{Kind: Pause, After: 20 * time.Millisecond, For: 300 * time.Millisecond})
	began := time.Now()
	f.reports(t, order{For: 50 * time.Millisecond})
	if took := time.Since(began); took < 300*time.Millisecond {
		t.Errorf("it took %s, less than the pause", took)
	}
}

func TestALostEnvironmentWorksOnAndIsNotUsedAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "written")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	written := func() string {
		text, _ := os.ReadFile(file)
		return string(text)
	}
	f := newFunction(t, Fate{Kind: Lose, After: 100 * time.Millisecond, For: 400 * time.Millisecond})
	f.fails(t, order{For: 200 * time.Millisecond, Append: file}, "Sandbox.Lost")
	if written() != "" {
		t.Error("it was written before the process was frozen")
	}
	f.reports(t, order{})
	f.Rest()
	if written() != "x" {
		t.Errorf("the lost process wrote %q", written())
	}
	if c := f.Counts(); c.Started != 2 || c.Outcast != 1 {
		t.Errorf("counts: %s", c)
	}
}

func TestAFunctionThatCannotStartFailsEveryInvocation(t *testing.T) {
	f := newFunction(t)
	f.Command = func() *exec.Cmd {
		cmd := obedient()
		cmd.Env = append(cmd.Env, functionVariable+"=cannot start")
		return cmd
	}
	if failed := f.fails(t, order{}, "Runtime.ExitError"); !strings.Contains(failed.Message, "no rules") {
		t.Errorf("it does not show what the process wrote: %s", failed.Message)
	}
	f.Command = func() *exec.Cmd { return exec.Command("/nowhere/bootstrap") }
	var failed *FunctionError
	if _, err := f.Invoke(t.Context(), nil); err == nil || errors.As(err, &failed) {
		t.Errorf("a command that is not there is %v, want an error that is not the function's", err)
	}
}
