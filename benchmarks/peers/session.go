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
	"time"
)

// The arguments with which this program starts itself.
const (
	modeContender = "contender"
	modeSimulator = "simulator"
)

// errNotServed says that the endpoint does not know an operation that a contender needs.
var errNotServed = errors.New("the endpoint does not serve an operation of this contender")

const endMax = 40 * time.Second // Follow has 30 s for its end

// session is the process of a contender.
type session struct {
	process  *exec.Cmd
	commands io.WriteCloser
	messages chan message
	over     chan struct{} // closed when the process says no more
	last     message       // valid once over is closed
}

// start starts a contender's process and gives it its job.
func start(process *exec.Cmd, j job) (*session, error) {
	s := &session{process: process, messages: make(chan message, 4), over: make(chan struct{})}
	var err error
	s.process.Stderr = os.Stderr
	s.process.WaitDelay = time.Second
	if s.commands, err = s.process.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := s.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.process.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", j.Contender, err)
	}
	go s.listen(out)
	return s, s.tell(j)
}

func (s *session) listen(out io.Reader) {
	defer close(s.over)
	lines := bufio.NewReader(out)
	for {
		var m message
		if readLine(lines, &m) != nil {
			return
		}
		s.last = m
		if m.Event == eventStopped || m.Event == eventFailed {
			return
		}
		s.messages <- m
	}
}

func (s *session) tell(what any) error { return json.NewEncoder(s.commands).Encode(what) }

// await returns the next message, which must be this event.
func (s *session) await(ctx context.Context, event string) (message, error) {
	select {
	case m := <-s.messages:
		if m.Event != event {
			return m, fmt.Errorf("a contender says %q, and should say %q", m.Event, event)
		}
		return m, nil
	case <-s.over:
		return message{}, s.failure()
	case <-ctx.Done():
		return message{}, fmt.Errorf("waiting until a contender says %q: %w", event, context.Cause(ctx))
	}
}

// failure says why a process is over that should not be.
func (s *session) failure() error {
	switch {
	case s.last.NotServed:
		return errNotServed
	case s.last.Event == eventFailed:
		return errors.New(s.last.Error)
	}
	return errors.New("the contender ended before it was told to")
}

// report returns what was used, once the contender has had nothing to do for a while.
func (s *session) report(ctx context.Context) (usage, error) {
	if err := s.tell(commandReport); err != nil {
		return usage{}, err
	}
	m, err := s.await(ctx, eventUsage)
	return m.Usage, err
}

// finish waits until the process has ended by itself, at most as long as its context lasts.
func (s *session) finish() error {
	<-s.over
	err := s.process.Wait()
	if s.last.Event == eventFailed {
		return s.failure()
	}
	return err
}

// stop ends the process, also if it failed.
func (s *session) stop() error {
	_ = s.tell(commandStop)
	_ = s.commands.Close()
	defer time.AfterFunc(endMax, func() { _ = s.process.Process.Kill() }).Stop()
	return s.finish()
}
