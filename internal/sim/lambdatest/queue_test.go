package lambdatest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

// consumer is a function of messages. It is told by their number and how often they have come.
type consumer struct {
	mu     sync.Mutex
	got    []string // bodies
	sizes  []int
	answer func(ids []string) (string, error)
}

func (c *consumer) Invoke(_ context.Context, payload []byte) ([]byte, error) {
	var event eventDocument[struct {
		MessageID, Body, EventSource string
	}]
	if err := json.Unmarshal(payload, &event); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var ids []string
	for _, r := range event.Records {
		if r.EventSource != "aws:sqs" {
			return nil, fmt.Errorf("a message from %q", r.EventSource)
		}
		ids = append(ids, r.MessageID)
		c.got = append(c.got, r.Body)
	}
	c.sizes = append(c.sizes, len(ids))
	if c.answer == nil {
		return nil, nil
	}
	answer, err := c.answer(ids)
	return []byte(answer), err
}

// consume sends messages {"n":0}, {"n":1}... and returns how often each came.
func consume(t *testing.T, n int, q *Queue, c *consumer) (times map[string]int) {
	t.Helper()
	q.Function = c
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- q.Run(ctx) }()
	bodies := make([]string, n)
	for i := range bodies {
		bodies[i] = fmt.Sprintf(`{"n":%d}`, i)
	}
	if answer, err := q.Invoke(ctx, []byte(`{"Records":[`+strings.Join(bodies, ",")+`]}`)); len(answer) > 0 || err != nil {
		t.Fatalf("sending: %s, %v", answer, err)
	}
	if err := q.Settle(ctx); err != nil {
		t.Fatal(err)
	}
	stop()
	if err := <-ran; err != nil {
		t.Error(err)
	}
	if q.Done() != n {
		t.Errorf("%d messages are done: want %d", q.Done(), n)
	}
	times = map[string]int{}
	for _, body := range c.got {
		times[body]++
	}
	if len(times) != n {
		t.Errorf("%d messages came: want %d", len(times), n)
	}
	return times
}

func TestMessagesComeInAnyOrderInBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &consumer{}
		for body, n := range consume(t, 100, &Queue{BatchSize: 7}, c) {
			if n != 1 {
				t.Errorf("%s came %d times", body, n)
			}
		}
		if slices.IsSorted(c.got) {
			t.Error("they came in their order")
		}
		if slices.Max(c.sizes) > 7 {
			t.Errorf("batches of %v", c.sizes)
		}
	})
}

func TestMessagesThatAreNotDoneComeAgain(t *testing.T) {
	for name, c := range map[string]struct {
		answer string // to the first invocation, "?" being the first message's id
		err    error
		again  int // messages of a batch of 3
	}{
		"nothing":          {"", nil, 0},
		"null":             {"null", nil, 0},
		"an empty list":    {`{"batchItemFailures":[]}`, nil, 0},
		"one":              {`{"batchItemFailures":[{"itemIdentifier":"?"}]}`, nil, 1},
		"one twice":        {`{"batchItemFailures":[{"itemIdentifier":"?"},{"itemIdentifier":"?"}]}`, nil, 1},
		"an unknown one":   {`{"batchItemFailures":[{"itemIdentifier":"?"},{"itemIdentifier":"x"}]}`, nil, 3},
		"an empty one":     {`{"batchItemFailures":[{"itemIdentifier":""}]}`, nil, 3},
		"another name":     {`{"batchItemFailures":[{"id":"?"}]}`, nil, 3},
		"no JSON":          {`{`, nil, 3},
		"a function error": {"", &FunctionError{"Unhandled", "as told"}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first := true
				function := &consumer{answer: func(ids []string) (string, error) {
					if !first {
						return "", nil
					}
					first = false
					return strings.ReplaceAll(c.answer, "?", ids[0]), c.err
				}}
				again := 0
				for _, n := range consume(t, 3, &Queue{ConcurrencyMax: 1}, function) {
					again += n - 1
				}
				if again != c.again {
					t.Errorf("%d messages came again: want %d", again, c.again)
				}
			})
		})
	}
}

func TestAMessageThatIsDoneMayComeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left := 2
		again := func() bool { left--; return left >= 0 }
		times := consume(t, 1, &Queue{ConcurrencyMax: 1, Again: again}, &consumer{})
		if diff := cmp.Diff(map[string]int{`{"n":0}`: 3}, times); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAnErrorThatIsNotTheFunctionsEndsTheQueue(t *testing.T) {
	broken := errors.New("broken")
	q := &Queue{Function: &consumer{answer: func([]string) (string, error) { return "", broken }}}
	ran := make(chan error, 1)
	go func() { ran <- q.Run(t.Context()) }()
	if _, err := q.Invoke(t.Context(), []byte(`{"Records":[{}]}`)); err != nil {
		t.Fatal(err)
	}
	if err := q.Settle(t.Context()); !errors.Is(err, errLeft) || !errors.Is(err, broken) {
		t.Errorf("settled with %v", err)
	}
	if err := <-ran; !errors.Is(err, broken) {
		t.Errorf("ended with %v", err)
	}
	if _, err := q.Invoke(t.Context(), []byte(`[]`)); err == nil {
		t.Error("a payload that is no event was taken")
	}
}
