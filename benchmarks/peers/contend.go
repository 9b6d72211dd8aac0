package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/aws/smithy-go"
)

// contend is the main function of a contender's process: it reads a job and commands, and tells what happens.
func contend(in io.Reader, out io.Writer) error {
	lines := bufio.NewReader(in)
	var j job
	if err := readLine(lines, &j); err != nil {
		return fmt.Errorf("reading the job: %w", err)
	}
	run, err := contenderOf(j)
	if err != nil {
		return err
	}
	tell := json.NewEncoder(out)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ready := make(chan struct{})
	m := newMeter(func() { close(ready) })
	if !j.Gated {
		m.open()
	}
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, j, m) }()
	commands := make(chan string)
	go func() {
		defer close(commands)
		for {
			var command string
			if readLine(lines, &command) != nil {
				return // the parent process is gone
			}
			commands <- command
		}
	}()
	for {
		select {
		case <-ready:
			ready = nil
			err = tell.Encode(message{Event: eventReady})
		case err := <-ended:
			return tell.Encode(ending(err))
		case command := <-commands:
			switch command {
			case commandOpen:
				m.open()
			case commandReport:
				err = tell.Encode(message{Event: eventUsage, Usage: m.report(ctx, j.Quiet)})
			default: // commandStop, or the parent process is gone
				stop()
				return tell.Encode(ending(<-ended))
			}
		}
		if err != nil {
			return err
		}
	}
}

func readLine(from *bufio.Reader, into any) error {
	line, err := from.ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, into)
}

// ending says how a contender ended.
func ending(err error) message {
	if err == nil || errors.Is(err, context.Canceled) {
		return message{Event: eventStopped}
	}
	var api smithy.APIError
	unknown := errors.As(err, &api) && api.ErrorCode() == "UnknownOperationException"
	return message{Event: eventFailed, Error: err.Error(), NotServed: unknown}
}
