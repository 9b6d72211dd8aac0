package lambdatest

import (
	"context"
	"fmt"
	"os/exec"
	"sync"
	"time"
)

// Fate is what happens to an environment amid an invocation. The zero Fate is that
// nothing does.
type Fate struct {
	Kind  FateKind
	After time.Duration // from when the invocation begins
	For   time.Duration // Pause and Lose: how long the process is frozen
	// Timeout is the function's for this invocation, if it is not 0.
	Timeout time.Duration
}

// FateKind says what happens. If the invocation is over before, nothing does.
type FateKind uint8

const (
	// Spare lets the invocation be.
	Spare FateKind = iota
	// Kill ends the process with SIGKILL. The invocation fails.
	Kill
	// Pause freezes the process, which then goes on.
	Pause
	// Lose freezes the process, and the invocation fails at once. When others may have
	// taken over its work the process goes on, as if nothing had happened. Lambda
	// promises that no such process is left; a function that bears it bears a
	// worker that is cut off from Lambda, too.
	Lose
)

// String returns the fate as a few words.
func (f Fate) String() string {
	words := [...]string{"spared", "killed", "paused", "lost"}[f.Kind]
	if f.Kind != Spare {
		words += fmt.Sprintf(" after %s", f.After.Round(time.Millisecond))
	}
	if f.For > 0 {
		words += fmt.Sprintf(" for %s", f.For.Round(time.Millisecond))
	}
	if f.Timeout > 0 {
		words += fmt.Sprintf(", with a timeout of %s", f.Timeout.Round(time.Millisecond))
	}
	return words
}

// Function is a function with as many environments as it has invocations at a
// time. An environment is used again, and replaced when it has died. The zero
// value of every field but Command stands for its default.
type Function struct {
	Command        func() *exec.Cmd // makes the process of an environment; Cmd.Stdout and Stderr are replaced
	Timeout        time.Duration    // of an invocation; default: 3 s, as Lambda's
	ConcurrencyMax int              // environments at work at a time; more invocations wait; default: 10
	// Fate is what happens to the invocation with a payload; called by several goroutines. Default: nothing does.
	Fate func(payload []byte) Fate

	once  sync.Once
	slots chan struct{}
	lost  sync.WaitGroup // environments that work although they were given up

	mu     sync.Mutex
	idle   []*Environment
	counts Counts
}

// Counts are what happened to a Function so far.
type Counts struct {
	Started, Invoked        int // environments, invocations
	Killed, Paused, Outcast int // by a Fate
	Failed                  int // invocations that ended without an answer
}

const (
	timeoutDefault     = 3 * time.Second
	concurrencyDefault = 10
)

func (f *Function) start() {
	f.once.Do(func() {
		if f.Timeout == 0 {
			f.Timeout = timeoutDefault
		}
		if f.ConcurrencyMax == 0 {
			f.ConcurrencyMax = concurrencyDefault
		}
		if f.Fate == nil {
			f.Fate = func([]byte) Fate { return Fate{} }
		}
		f.slots = make(chan struct{}, f.ConcurrencyMax)
	})
}

// Invoke runs the function on a payload and returns its answer. The error is a
// *FunctionError where the function failed or its environment died.
func (f *Function) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	f.start()
	select {
	case f.slots <- struct{}{}:
		defer func() { <-f.slots }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	e, err := f.environment(ctx)
	if err == nil {
		var answer []byte
		if answer, err = f.invoke(ctx, e, payload); err == nil {
			return answer, nil
		}
	}
	f.count(func(c *Counts) { c.Failed++ })
	return nil, err
}

// environment returns an idle environment, or a new one.
func (f *Function) environment(ctx context.Context) (*Environment, error) {
	f.mu.Lock()
	f.counts.Invoked++
	for len(f.idle) > 0 {
		e := f.idle[len(f.idle)-1]
		f.idle = f.idle[:len(f.idle)-1]
		if e.Alive() {
			f.mu.Unlock()
			return e, nil
		}
		e.Kill()
	}
	f.counts.Started++
	f.mu.Unlock()
	return Start(ctx, f.Command())
}

// invoke has the environment work, and its fate overtake it.
func (f *Function) invoke(ctx context.Context, e *Environment, payload []byte) ([]byte, error) {
	fate := f.Fate(payload)
	timeout := f.Timeout
	if fate.Timeout > 0 {
		timeout = fate.Timeout
	}
	if fate.Kind == Lose { // time goes on for a frozen process
		timeout += fate.After + fate.For
	}
	done := make(chan outcome, 1)
	go func() {
		answer, err := e.Invoke(ctx, payload, timeout)
		done <- outcome{answer, err}
	}()
	var blow <-chan time.Time
	if fate.Kind != Spare {
		timer := time.NewTimer(fate.After)
		defer timer.Stop()
		blow = timer.C
	}
	select {
	case out := <-done:
		return f.release(e, out)
	case <-blow:
	}
	switch fate.Kind {
	case Kill:
		f.count(func(c *Counts) { c.Killed++ })
		e.Kill()
	case Pause:
		f.count(func(c *Counts) { c.Paused++ })
		e.Freeze()
		sleep(ctx, fate.For)
		e.Thaw()
	case Lose:
		f.count(func(c *Counts) { c.Outcast++ })
		e.Freeze()
		f.lost.Go(func() {
			sleep(ctx, fate.For)
			e.Thaw()
			<-done
			e.Kill()
		})
		return nil, &FunctionError{"Sandbox.Lost", "nothing was heard of the environment any more"}
	}
	return f.release(e, <-done)
}

// release keeps an environment that may be used again.
func (f *Function) release(e *Environment, out outcome) ([]byte, error) {
	if e.Alive() {
		e.Freeze() // a pause may have ended after the invocation
		f.mu.Lock()
		f.idle = append(f.idle, e)
		f.mu.Unlock()
	} else {
		e.Kill()
	}
	return out.answer, out.err
}

// Rest waits until every environment that was given up has done what it was at.
func (f *Function) Rest() { f.lost.Wait() }

// Close kills all environments. No invocation may be under way.
func (f *Function) Close() {
	f.Rest()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.idle {
		e.Kill()
	}
	f.idle = nil
}

// Counts returns what happened so far.
func (f *Function) Counts() Counts {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts
}

func (f *Function) count(add func(*Counts)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	add(&f.counts)
}

// Add returns the sum of both counts.
func (c Counts) Add(d Counts) Counts {
	return Counts{
		c.Started + d.Started, c.Invoked + d.Invoked,
		c.Killed + d.Killed, c.Paused + d.Paused, c.Outcast + d.Outcast,
		c.Failed + d.Failed,
	}
}

// String returns the counts as one line.
func (c Counts) String() string {
	return fmt.Sprintf("%d invocations on %d environments: %d killed, %d paused, %d given up; %d failed",
		c.Invoked, c.Started, c.Killed, c.Paused, c.Outcast, c.Failed)
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
