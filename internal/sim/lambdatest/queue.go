package lambdatest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Queue is a standard SQS queue with its event source mapping, whose function
// response types hold ReportBatchItemFailures. It is the Invoker of a Mapping, which
// then only brings records: each becomes a message that stays until it is done.
// Messages come in any order and, where Again says so, more than once. A message that
// is not done comes again at once, as after a visibility timeout that was too short.
// The zero value of every field but Function stands for its default.
type Queue struct {
	Function       Invoker
	BatchSize      int           // default: 10
	ConcurrencyMax int           // invocations at a time; default: 2
	RetryPause     time.Duration // after a failure; default: 1 ms
	// Again says whether a message that is done is delivered once more; called by
	// several goroutines. Default: never.
	Again func() bool

	once     sync.Once
	mu       sync.Mutex
	changed  chan struct{} // closed and made anew at every change
	waiting  []*message
	open     int // messages that are in the queue, those under way among them
	received int
	done     int
	ended    bool
	failed   error // with which Run ended
}

// message is one that waits or is under way.
type message struct {
	id       string
	body     string
	receives int
}

const (
	queueBatchDefault       = 10
	queueConcurrencyDefault = 2
	queueARN                = "arn:aws:sqs:us-east-1:000000000000:lambdatest"
)

func (q *Queue) start() {
	q.once.Do(func() {
		q.BatchSize = orDefault(q.BatchSize, queueBatchDefault)
		q.ConcurrencyMax = orDefault(q.ConcurrencyMax, queueConcurrencyDefault)
		q.RetryPause = orDefault(q.RetryPause, retryPauseDefault)
		q.changed = make(chan struct{})
	})
}

// Invoke sends an event's records to the queue.
func (q *Queue) Invoke(_ context.Context, payload []byte) ([]byte, error) {
	q.start()
	var event eventDocument[json.RawMessage]
	if err := json.Unmarshal(payload, &event); err != nil {
		return nil, fmt.Errorf("sending an event's records to a queue: %w", err)
	}
	q.note(func() {
		for _, record := range event.Records {
			q.received++
			q.open++
			q.waiting = append(q.waiting, &message{id: strconv.Itoa(q.received), body: string(record)})
		}
	})
	return nil, nil
}

// Run delivers messages until ctx ends, which is no error. It is called once.
func (q *Queue) Run(ctx context.Context) error {
	q.start()
	group, work := errgroup.WithContext(ctx)
	for range q.ConcurrencyMax {
		group.Go(func() error {
			for work.Err() == nil {
				if err := q.deliver(work, q.take(work)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := group.Wait()
	if ctx.Err() != nil {
		err = nil
	}
	q.note(func() { q.ended, q.failed = true, err })
	return err
}

// take chooses messages, and waits until there are any or ctx ends.
func (q *Queue) take(ctx context.Context) (taken []*message) {
	for {
		q.mu.Lock()
		for len(q.waiting) > 0 && len(taken) < q.BatchSize {
			i, last := rand.IntN(len(q.waiting)), len(q.waiting)-1
			taken = append(taken, q.waiting[i])
			q.waiting[i] = q.waiting[last]
			q.waiting = q.waiting[:last]
		}
		changed := q.changed
		q.mu.Unlock()
		if len(taken) > 0 {
			return taken
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

// deliver invokes the function with messages, and puts back those that are not done.
func (q *Queue) deliver(ctx context.Context, messages []*message) error {
	if len(messages) == 0 {
		return nil
	}
	payload, err := queueEvent(messages)
	if err != nil {
		return err
	}
	answer, err := q.Function.Invoke(ctx, payload)
	var failed *FunctionError
	left := messages
	switch {
	case ctx.Err() != nil:
		return nil
	case errors.As(err, &failed):
	case err != nil:
		return fmt.Errorf("invoking the function: %w", err)
	default:
		left = leftOf(answer, messages)
	}
	if len(left) > 0 {
		sleep(ctx, q.RetryPause)
	}
	again := map[*message]bool{}
	for _, m := range left {
		again[m] = true
	}
	for _, m := range messages {
		if !again[m] && q.Again != nil && q.Again() {
			again[m] = true
		}
	}
	q.note(func() {
		for _, m := range messages {
			if again[m] {
				q.waiting = append(q.waiting, m)
			} else {
				q.open--
				q.done++
			}
		}
	})
	return nil
}

// leftOf reads a partial batch response and returns the messages that it leaves in
// the queue: those that it names. An empty answer or list is success. An identifier
// that is empty, null, missing or of no message in the batch, and an answer that is
// something else altogether, leave all (Lambda developer guide, "Handling errors for
// an SQS event source in Lambda").
func leftOf(answer []byte, messages []*message) []*message {
	named, ok := identifiers(answer)
	if !ok {
		return messages
	}
	var left []*message
	for _, m := range messages {
		if named[m.id] {
			left = append(left, m)
			delete(named, m.id)
		}
	}
	if len(named) > 0 {
		return messages
	}
	return left
}

// identifiers are the itemIdentifiers of a partial batch response.
func identifiers(answer []byte) (named map[string]bool, ok bool) {
	named = map[string]bool{}
	if len(bytes.TrimSpace(answer)) == 0 {
		return named, true
	}
	var response struct {
		Failures []struct {
			Identifier string `json:"itemIdentifier"` // what is null or missing is none of a message either
		} `json:"batchItemFailures"`
	}
	if json.Unmarshal(answer, &response) != nil {
		return nil, false
	}
	for _, failure := range response.Failures {
		named[failure.Identifier] = true
	}
	return named, true
}

// queueEvent is the payload with messages (Lambda developer guide, "Using Lambda with
// Amazon SQS"; the fields that a function could do without are left out).
func queueEvent(messages []*message) ([]byte, error) {
	type attributes struct {
		Receives string `json:"ApproximateReceiveCount"`
	}
	type queueRecord struct {
		ID         string     `json:"messageId"`
		Receipt    string     `json:"receiptHandle"`
		Body       string     `json:"body"`
		Attributes attributes `json:"attributes"`
		Source     string     `json:"eventSource"`
		ARN        string     `json:"eventSourceARN"`
		Region     string     `json:"awsRegion"`
	}
	var event eventDocument[queueRecord]
	for _, m := range messages {
		m.receives++
		receives := strconv.Itoa(m.receives)
		event.Records = append(event.Records, queueRecord{
			ID: m.id, Receipt: m.id + "/" + receives, Body: m.body, Attributes: attributes{receives},
			Source: "aws:sqs", ARN: queueARN, Region: "us-east-1",
		})
	}
	payload, err := encode(event)
	if err != nil {
		return nil, fmt.Errorf("encoding messages: %w", err)
	}
	return payload, nil
}

// Settle waits until every message is done. Run must be running; its end is an error.
func (q *Queue) Settle(ctx context.Context) error {
	q.start()
	for {
		q.mu.Lock()
		open, ended, failed, changed := q.open, q.ended, q.failed, q.changed
		q.mu.Unlock()
		switch {
		case ended:
			return errors.Join(errLeft, failed)
		case open == 0:
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(errLeft, context.Cause(ctx))
		case <-changed:
		}
	}
}

// Done returns how many messages were done so far.
func (q *Queue) Done() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.done
}

// note changes something under q.mu and wakes the waiters.
func (q *Queue) note(change func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	change()
	close(q.changed)
	q.changed = make(chan struct{})
}
