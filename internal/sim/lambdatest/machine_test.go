package lambdatest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// mapped is a machine that maps over the list of its input, two items at a time,
// and tolerates so many percent of failures.
const mapped = `{"StartAt":"All","States":{
"All":{"Type":"Map","ItemsPath":"$.list","MaxConcurrency":2,"ToleratedFailurePercentage":%d,"ItemSelector":{"item.$":"$$.Map.Item.Value","with.$":"$.with"},
 "ItemProcessor":{"ProcessorConfig":{"Mode":"DISTRIBUTED","ExecutionType":"STANDARD"},"StartAt":"One","States":{
  "One":{"Type":"Task","Resource":"arn:aws:states:::lambda:invoke","Parameters":{"FunctionName":"f","Payload":{"fixed":1,"got.$":"$"}},"TimeoutSeconds":60,
   "Retry":[{"ErrorEquals":["Final"],"MaxAttempts":0},{"ErrorEquals":["States.ALL"],"IntervalSeconds":1,"MaxAttempts":2,"BackoffRate":2}],
   "ResultSelector":{"said.$":"$.Payload.said"},"ResultPath":"$.answer","Next":"Enough"},
  "Enough":{"Type":"Choice","Choices":[{"Variable":"$.answer.said","BooleanEquals":true,"Next":"End"}],"Default":"One"},
  "End":{"Type":"Succeed","OutputPath":null}}},
 "ResultPath":"$.results","Next":"Out"},
"Out":{"Type":"Succeed","OutputPath":"$.results"}}}`

func TestAMachineRunsItsStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		m := &Machine{Definition: fmt.Appendf(nil, mapped, 0), Invoke: func(_ context.Context, payload []byte) ([]byte, error) {
			time.Sleep(time.Second)
			if !strings.HasPrefix(string(payload), `{"fixed":1,"got":{`) || !strings.Contains(string(payload), `"with":"w"`) {
				t.Errorf("payload %s", payload)
			}
			return fmt.Appendf(nil, `{"said":%v}`, calls.Add(1) > 2), nil
		}}
		began := time.Now()
		out, err := m.Execute(t.Context(), []byte(`{"list":["a","b","c"],"with":"w"}`))
		if err != nil || string(out) != `[{},{},{}]` {
			t.Errorf("output %s, %v", out, err)
		}
		if calls.Load() != 5 || m.Entered("One") != 5 || m.MostAtOnce() != 2 || time.Since(began) != 3*time.Second {
			t.Errorf("%d calls, %d at once, in %v", calls.Load(), m.MostAtOnce(), time.Since(began))
		}
	})
}

func TestAMachineRetriesAndTolerates(t *testing.T) {
	for name, c := range map[string]struct {
		tolerated, calls int
		failure, want    string
		took             time.Duration
	}{
		"what passes":             {0, 3, "Passing", "", 3 * time.Second},
		"what does not pass":      {0, 3, "Staying", "States.ExceedToleratedFailureThreshold", 3 * time.Second},
		"what no retry helps":     {0, 1, "Final", "States.ExceedToleratedFailureThreshold", 0},
		"failures, all tolerated": {100, 3, "Staying", "", 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				m := &Machine{Definition: fmt.Appendf(nil, mapped, c.tolerated), Invoke: func(context.Context, []byte) ([]byte, error) {
					if calls++; calls < 3 || c.failure != "Passing" {
						return nil, &ExecutionError{c.failure, "why"}
					}
					return []byte(`{"said":true}`), nil
				}}
				began := time.Now()
				_, err := m.Execute(t.Context(), []byte(`{"list":["a"],"with":1}`))
				var failed *ExecutionError
				if errors.As(err, &failed); (err == nil) != (c.want == "") || err != nil && failed.Name != c.want {
					t.Errorf("the execution ended with %v, want %q", err, c.want)
				}
				if calls != c.calls || time.Since(began) != c.took {
					t.Errorf("%d calls in %v", calls, time.Since(began))
				}
			})
		})
	}
}

// What failed says more in a map's result than what did not; what is caught says what its last state says.
func TestAMachineTellsOfWhatFailed(t *testing.T) {
	for catch, want := range map[string]string{
		"": `"Cause":"why","Error":"Final",`,
		`"Catch":[{"ErrorEquals":["States.ALL"],"ResultPath":"$.failed","Next":"Caught"}],`: `[{"Cause":"why","Error":"Final"}]`,
	} {
		text := strings.Replace(fmt.Sprintf(mapped, 100), `"ResultSelector":{"said`, catch+`"ResultSelector":{"said`, 1)
		text = strings.Replace(text, `"End":{`, `"Caught":{"Type":"Succeed","OutputPath":"$.failed"},"End":{`, 1)
		m := &Machine{Definition: []byte(text), Invoke: func(context.Context, []byte) ([]byte, error) {
			return nil,
				&ExecutionError{"Final", "why"}
		}}
		out, err := m.Execute(t.Context(), []byte(`{"list":["a"],"with":1}`))
		if err != nil || !strings.Contains(string(out), want) || (catch == "") != strings.Contains(string(out), `"Status":"FAILED"`) {
			t.Errorf("with %q: output %s, %v", catch, out, err)
		}
	}
}

func TestAMachineHoldsToTheLimitOfAState(t *testing.T) {
	m := &Machine{Definition: fmt.Appendf(nil, mapped, 0), Invoke: func(context.Context, []byte) ([]byte,
		error) {
		return []byte(`{"said":true}`), nil
	}}
	var failed *ExecutionError
	if _, err := m.Execute(t.Context(), []byte(`{"list":["`+strings.Repeat("x", payloadMax)+`"],"with":1}`)); !errors.As(err, &failed) ||
		failed.Name != "States.DataLimitExceeded" {
		t.Errorf("an input that is too large: %v", err)
	}
	for _, broken := range []string{`{"StartAt":"All","Stats":{}}`, strings.Replace(mapped, `"ItemsPath"`, `"ItemPath"`, 1),
		strings.Replace(mapped, `"Next":"Out"`, `"Next":"Nowhere"`, 1)} {
		m.Definition = []byte(strings.Replace(broken, "%d", "0", 1))
		if _, err := m.Execute(t.Context(), []byte(`{"list":[],"with":1}`)); err == nil {
			t.Errorf("%.40s runs", broken)
		}
	}
}
