package handlers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/dynamojson"
)

var errThrottled = errors.New("throttled")

func TestTheAnswerNamesWhatIsNotDone(t *testing.T) {
	const records = 4
	stream := func(i int) string { return insert("u"+strconv.Itoa(i), strconv.Itoa(i+8)) } // 8, 9, 10, 11
	queue := func(i int) string { return message("m"+strconv.Itoa(i+8), stream(i)) }
	for name, c := range map[string]struct {
		wrap   func(...string) string
		record func(int) string
		all    []string // how the answer names each record
		lowest bool     // only the first of them
	}{
		"stream":            {event, stream, []string{"8", "9", "10", "11"}, true},
		"queue":             {event, queue, []string{"m8", "m9", "m10", "m11"}, false},
		"pipe of a stream":  {list, stream, []string{"e8", "e9", "e10", "e11"}, false},
		"pipe of a queue":   {list, queue, []string{"m8", "m9", "m10", "m11"}, false},
		"unordered records": {event, func(i int) string { return stream(records - 1 - i) }, []string{"8", "9", "10", "11"}, true},
	} {
		for _, pieces := range []int{0, 1, 3} {
			for done := range records + 1 {
				t.Run(fmt.Sprintf("%s, pieces of %d, %d done", name, pieces, done), func(t *testing.T) {
					var all []string
					for i := range records {
						all = append(all, c.record(i))
					}
					e := newEngine()
					e.doneMax, e.failure = done, errThrottled
					answer, err := newHandler(t, e, func(cfg *Config) { cfg.PieceFirst = pieces }).
						Invoke(t.Context(), []byte(c.wrap(all...)))
					want := c.all[done:]
					if c.lowest {
						want = want[:min(1, len(want))]
					}
					if whole := c.lowest && done == 0; whole != errors.Is(err, errThrottled) || !whole && string(answer) != failures(want...) {
						t.Errorf("answer %s, %v, want %v", answer, err, want)
					}
				})
			}
		}
	}
}

func TestSequenceNumbersAreNamedAsTheyCame(t *testing.T) {
	e := newEngine()
	e.doneMax, e.failure = 1, errThrottled
	answer, err := newHandler(t, e).Invoke(t.Context(), []byte(event(insert("a", "8"), insert("b", "000000000000000000009"))))
	if err != nil || string(answer) != failures("000000000000000000009") {
		t.Errorf("answer %s, %v", answer, err)
	}
}

// A malformed record between others: what must be parked, applied, rederived
// and answered when something fails.
func TestFailuresAroundAMalformedRecord(t *testing.T) {
	noNumber := strings.Replace(malformed("m", "2"), `"SequenceNumber"`, `"x"`, 1)
	for name, c := range map[string]struct {
		payload string
		change  func(*engine, *Config)
		answer  string // "": an error, so that Lambda halves the batch
		calls   []string
	}{
		"parking a record without a number fails": {
			event(insert("a", "1"), noNumber, insert("b", "3")),
			func(e *engine, _ *Config) { e.parking = errThrottled },
			"", []string{"process 1"},
		},
		"parking a record whose number is none fails": {
			event(insert("a", "1"), malformed("m", "2x"), insert("b", "3")),
			func(e *engine, _ *Config) { e.parking = errThrottled },
			"", []string{"process 1"},
		},
		"parking a message fails": {
			event(message("m1", insert("a", "1")), message("m2", "{"), message("m3", insert("b", "3"))),
			func(e *engine, _ *Config) { e.parking = errThrottled },
			failures("m2", "m3"), []string{"process 1"},
		},
		"a message is parked": {
			event(message("m1", insert("a", "1")), message("m2", "{"), message("m3", insert("b", "3"))), nil,
			failures(), []string{"park record.json", "process 1 3"},
		},
		"a message of something else is parked": {
			event(message("m1", `{"hello":1}`), strings.Replace(message("m2", ""), `"body"`, `"x"`, 1), message("m3", insert("b", "3")+"x")), nil,
			failures(), []string{"park record.json", "park record.json", "park record.json", "rederive USER#b/PROFILE@3"},
		},
		"parking fails": {
			event(insert("a", "1"), malformed("m", "2"), insert("b", "3")),
			func(e *engine, _ *Config) { e.parking = errThrottled },
			failures("2"), []string{"process 1"},
		},
		"a record before it fails": {
			event(insert("m", "1"), malformed("m", "2"), insert("b", "3")),
			func(e *engine, _ *Config) { e.doneMax, e.failure = 0, errThrottled },
			"", []string{"park record.value", "rederive USER#m/PROFILE@2", "process "},
		},
		"a record behind it fails": {
			event(insert("a", "1"), malformed("m", "2"), insert("b", "3")),
			func(e *engine, _ *Config) { e.doneMax, e.failure = 1, errThrottled },
			failures("3"), []string{"park record.value", "rederive USER#m/PROFILE@2", "process 1"},
		},
		"a message before it fails": {
			event(message("m1", insert("m", "1")), message("m2", malformed("m", "2"))),
			func(e *engine, _ *Config) { e.doneMax, e.failure = 0, errThrottled },
			failures("m1"), []string{"park record.value", "rederive USER#m/PROFILE@2", "process "},
		},
		"its item comes again": {
			event(insert("m", "1"), malformed("m", "2"), insert("m", "3")), nil,
			failures(), []string{"park record.value", "rederive USER#m/PROFILE@2", "process 1 3"},
		},
		"rederiving fails": {
			event(insert("a", "1"), malformed("m", "2"), insert("b", "3")),
			func(e *engine, _ *Config) { e.derive = errThrottled },
			failures("2"), []string{"park record.value", "rederive USER#m/PROFILE@2", "process 1 3"},
		},
		"a record without a number waits for the others": {
			event(insert("m", "1"), noNumber, insert("b", "3")), nil,
			failures(), []string{"park record.value", "process 1 3", "rederive USER#m/PROFILE@?"},
		},
		"it comes again with others of its stream": {
			event(insert("m", "1"), noNumber, insert("b", "3")),
			func(e *engine, _ *Config) { e.doneMax, e.failure = 0, errThrottled },
			"", []string{"park record.value", "process ", "rederive USER#m/PROFILE@?"},
		},
		"it waits for the others of a queue": {
			event(message("m1", insert("m", "1")), message("m2", noNumber)),
			func(e *engine, _ *Config) { e.doneMax, e.failure = 0, errThrottled },
			failures("m1", "m2"), []string{"park record.value", "process "},
		},
		"rederiving some fails": {
			event(malformed("m", "1"), malformed("m", "2"), malformed("m", "3")),
			func(e *engine, cfg *Config) { cfg.PieceFirst, e.derive, e.deriveMax = 1, errThrottled, 1 },
			failures("2"), []string{"park record.value", "park record.value", "park record.value", "rederive USER#m/PROFILE@1",
				"rederive USER#m/PROFILE@2"},
		},
		"a pipe's record has no id": {
			list(strings.Replace(insert("a", "1"), `"eventID"`, `"x"`, 1)),
			func(e *engine, _ *Config) { e.doneMax, e.failure = 0, errThrottled },
			failures(""), []string{"process "},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine()
			h := newHandler(t, e, func(cfg *Config) {
				if c.change != nil {
					c.change(e, cfg)
				}
			})
			answer, err := h.Invoke(t.Context(), []byte(c.payload))
			if (err != nil) != (c.answer == "") || string(answer) != c.answer {
				t.Errorf("answer %s, %v, want %s", answer, err, c.answer)
			}
			if diff := cmp.Diff(c.calls, e.calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

// Lambda uses the memory of a payload again.
func TestWhatIsParkedOutlivesThePayload(t *testing.T) {
	e := newEngine()
	payload := []byte(event(malformed("m", "2")))
	if _, err := newHandler(t, e).Invoke(t.Context(), payload); err != nil {
		t.Fatal(err)
	}
	clear(payload)
	want := parkedRecord{
		ID: "2026-01-01T00:00:00.000#" + strings.Repeat("0", 39) + "2", Code: dynamojson.CodeValue, Raw: []byte(malformed("m", "2")),
	}
	if len(e.parked) != 1 {
		t.Fatalf("parked %v", e.parked)
	}
	if !strings.HasPrefix(e.parked[0].Reason, `attribute "name": unknown type "X"`) {
		t.Errorf("the reason is %q", e.parked[0].Reason)
	}
	e.parked[0].Reason = ""
	if diff := cmp.Diff(want, e.parked[0]); diff != "" {
		t.Error(diff)
	}
}

func TestARecordWithoutAPositionIsParkedUnderItsContent(t *testing.T) {
	record := func(user string) string { return strings.Replace(insert(user, "1"), `"SequenceNumber"`, `"x"`, 1) }
	e := newEngine()
	if _, err := newHandler(t, e).Invoke(t.Context(), []byte(event(record("a"), record("b"), record("a")))); err != nil {
		t.Fatal(err)
	}
	if len(e.parked) != 3 || e.parked[0].ID != e.parked[2].ID || e.parked[0].ID == e.parked[1].ID ||
		!strings.HasPrefix(e.parked[0].ID, "sha256:") {
		t.Errorf("parked %v", e.parked)
	}
}

func TestALateBatchThatIsNotDoneIsAnError(t *testing.T) {
	noKeys := strings.Replace(insert("a", "1"), `"Keys"`, `"x"`, 1)
	for name, c := range map[string]struct {
		change func(*engine, *Config)
		calls  []string
		fails  bool
	}{
		"all is well": {func(*engine, *Config) {}, []string{"park record.keys", "rederive USER#b/PROFILE@2 to b at 2",
			"rederive USER#c/PROFILE@3 to c at 3", "rederive USER#b/PROFILE@4 to b at 4"}, false},
		"rederiving fails": {func(e *engine, _ *Config) { e.derive = errThrottled },
			[]string{"park record.keys", "rederive USER#b/PROFILE@2 to b at 2"}, true},
		"parking fails": {func(e *engine, _ *Config) { e.parking = errThrottled },
			[]string{"rederive USER#b/PROFILE@2 to b at 2", "rederive USER#c/PROFILE@3 to c at 3", "rederive USER#b/PROFILE@4 to b at 4"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine()
			h := newHandler(t, e, func(cfg *Config) { cfg.PieceFirst = 1; c.change(e, cfg) })
			answer, err := h.Invoke(t.Context(), []byte(late(event(noKeys, insert("b", "2"), insert("c", "3"), insert("b", "4")))))
			if (err != nil) != c.fails || !c.fails && string(answer) != failures() {
				t.Errorf("answer %s, %v", answer, err)
			}
			if diff := cmp.Diff(c.calls, e.calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

// processor is a Processor from a function.
type processor func(ctx context.Context, records []change.Record) (int, error)

func (p processor) Process(ctx context.Context, records []change.Record) (int, error) {
	return p(ctx, records)
}

func TestAProcessorThatBreaksItsContractLosesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		done int
		err  error
		want string
	}{
		"fewer done and no error": {1, nil, failures("2")},
		"less than nothing":       {-1, nil, ""},
		"more than there are":     {3, nil, ""},
		"more, with an error":     {3, errThrottled, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHandler(t, newEngine(), func(cfg *Config) {
				cfg.Processor = processor(func(context.Context, []change.Record) (int, error) { return c.done, c.err })
			})
			answer, err := h.Invoke(t.Context(), []byte(event(insert("a", "1"), insert("b", "2"))))
			if (err != nil) != (c.want == "") || string(answer) != c.want {
				t.Errorf("answer %s, %v", answer, err)
			}
		})
	}
}

type stopError struct{}

func (stopError) Error() string     { return "the rules have changed" }
func (stopError) StopReading() bool { return true }

func TestAnInvocationIsLoggedInOneLine(t *testing.T) {
	for name, c := range map[string]struct {
		payload string
		change  func(*engine)
		want    []string
	}{
		"done": {event(insert("a", "1")), func(*engine) {},
			[]string{"level=INFO", `msg="invocation done"`, "source=stream", "records=1", "done=1", "parked=0", "failed=0", "requestId=r-1",
				"traceId=Root=1"}},
		"failed": {event(insert("a", "1"), insert("b", "2")), func(e *engine) { e.doneMax, e.failure = 1, errThrottled },
			[]string{"level=ERROR", "done=1", "failed=1", "throttled"}},
		"stopped": {event(insert("a", "1"), insert("b", "2")), func(e *engine) { e.doneMax, e.failure = 1, stopError{} },
			[]string{"level=ERROR", "invocation stopped", "done=1", "failed=1", "the rules have changed"}},
		"a call's own timeout": {event(insert("a", "1")), func(e *engine) { e.doneMax, e.failure = 0, context.DeadlineExceeded },
			[]string{"level=ERROR", `msg="invocation failed"`}},
		"parked":     {event(malformed("a", "1")), func(*engine) {}, []string{"level=WARN", "parked=1", "done=0", "failed=0"}},
		"a queue":    {event(message("m", insert("a", "1"))), func(*engine) {}, []string{"source=queue", "done=1"}},
		"late":       {late(event(insert("a", "1"))), func(*engine) {}, []string{`source="late batch"`, "done=1"}},
		"not a word": {"?", func(*engine) {}, []string{"level=ERROR", "want an object or a list"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine()
			c.change(e)
			var out bytes.Buffer
			h := newHandler(t, e, func(cfg *Config) { cfg.Logger = slog.New(slog.NewTextHandler(&out, nil)) })
			ctx := lambdacontext.NewContext(t.Context(), &lambdacontext.LambdaContext{AwsRequestID: "r-1"})
			ctx = context.WithValue(ctx, traceKey, "Root=1") //nolint:revive,staticcheck // aws-lambda-go keys it by this string
			_, _ = h.Invoke(ctx, []byte(c.payload))
			line := strings.ReplaceAll(out.String(), `traceId="Root=1"`, "traceId=Root=1")
			for _, want := range c.want {
				if !strings.Contains(line, want) {
					t.Errorf("%q is not in %s", want, line)
				}
			}
			if strings.Count(line, "\n") != 1 {
				t.Errorf("want one line, got %s", line)
			}
		})
	}
}
