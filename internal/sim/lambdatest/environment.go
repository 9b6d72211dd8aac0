package lambdatest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// initMax is how long a process may take until it asks for work (Lambda
// developer guide, "Lambda execution environment").
const initMax = 10 * time.Second

const logBytesMax = 64 << 10 // of the newest that a process wrote

var errTimeout = errors.New("the function's time was up")

// Environment is one execution environment: a process and its Runtime. It does
// one invocation at a time, and is frozen while it has none.
type Environment struct {
	runtime *Runtime
	cmd     *exec.Cmd
	log     *tail
	ended   context.Context // its cause says how the process ended
}

// Start starts a process and waits until it asks for work. Its environment gets
// AWS_LAMBDA_RUNTIME_API and a few more of Lambda's variables. The error is a *FunctionError where the process ended,
// said that it cannot start, or took too long.
func Start(ctx context.Context, cmd *exec.Cmd) (*Environment, error) {
	r, err := NewRuntime(ctx)
	if err != nil {
		return nil, err
	}
	e := &Environment{runtime: r, cmd: cmd, log: &tail{}}
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	// What a function may look at (Lambda developer guide, "Defined runtime environment variables").
	cmd.Env = append(cmd.Env, "AWS_LAMBDA_RUNTIME_API="+r.Address(), "AWS_LAMBDA_FUNCTION_NAME=lambdatest",
		"AWS_LAMBDA_FUNCTION_VERSION=$LATEST", "AWS_LAMBDA_LOG_STREAM_NAME="+rand.Text())
	cmd.Stdout, cmd.Stderr = e.log, e.log
	if err := cmd.Start(); err != nil {
		r.Close()
		return nil, fmt.Errorf("starting the function: %w", err)
	}
	ended, end := context.WithCancelCause(context.Background())
	e.ended = ended
	go func() {
		_ = cmd.Wait() // how it ended is in its state
		end(&FunctionError{"Runtime.ExitError", fmt.Sprintf("%s\n%s", cmd.ProcessState, e.log)})
	}()
	late := &FunctionError{"Sandbox.Timedout", fmt.Sprintf("it did not ask for work within %s", initMax)}
	ready, cancel := e.bounded(ctx, time.Now().Add(initMax), late)
	defer cancel()
	if err := r.Ready(ready); err != nil {
		e.Kill()
		return nil, fmt.Errorf("initialising the function: %w", err)
	}
	e.Freeze()
	return e, nil
}

// bounded returns a context that ends with ctx, with the process, and at the deadline.
func (e *Environment) bounded(ctx context.Context, deadline time.Time, cause error) (context.Context, context.CancelFunc) {
	ctx, cancelAtDeadline := context.WithDeadlineCause(ctx, deadline, cause)
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(e.ended, func() { cancel(context.Cause(e.ended)) })
	return ctx, func() {
		stop()
		cancel(nil)
		cancelAtDeadline()
	}
}

// Invoke thaws the process, has it work on the payload, and freezes it when it
// asks for more. If its time is up before, or ctx ends, the process is killed. The
// error is a *FunctionError, unless ctx ended.
func (e *Environment) Invoke(ctx context.Context, payload []byte, timeout time.Duration) ([]byte, error) {
	e.Thaw()
	deadline := time.Now().Add(timeout)
	working, cancel := e.bounded(ctx, deadline, errTimeout)
	defer cancel()
	answer, err := e.runtime.Invoke(working, payload, deadline)
	var failed *FunctionError
	switch {
	case errors.Is(err, errTimeout):
		e.Kill()
		return nil, &FunctionError{"Sandbox.Timedout", fmt.Sprintf("it took longer than %s", timeout)}
	case err != nil && !errors.As(err, &failed):
		e.Kill()
		return nil, err
	}
	// What the process still does before it asks again counts for the same timeout,
	// but takes the answer back no more.
	if e.runtime.Ready(working) != nil {
		e.Kill()
	} else {
		e.Freeze()
	}
	return answer, err
}

// Freeze stops the process where it stands.
func (e *Environment) Freeze() { e.signal(syscall.SIGSTOP) }

// Thaw lets it go on.
func (e *Environment) Thaw() { e.signal(syscall.SIGCONT) }

// Kill ends the process, which cannot know, and its Runtime. It may be called again.
func (e *Environment) Kill() {
	e.signal(syscall.SIGKILL)
	<-e.ended.Done()
	e.runtime.Close()
}

// Alive reports whether the process is there to be invoked again.
func (e *Environment) Alive() bool { return e.ended.Err() == nil }

// Log returns the newest of what the process wrote to its standard output and error.
func (e *Environment) Log() string { return e.log.String() }

func (e *Environment) signal(s syscall.Signal) {
	_ = e.cmd.Process.Signal(s) // it may have ended by itself
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - logBytesMax; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.text))
}
