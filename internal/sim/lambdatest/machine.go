package lambdatest

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dynamill/dynamill/internal/pace"
)

// payloadMax bounds what goes into a state and comes out of it (Step Functions
// developer guide, "Service quotas").
const payloadMax = 256 << 10

// errTooMuch is the name of the error where something is larger.
const errTooMuch = "States.DataLimitExceeded"

// Machine carries out a state machine of Step Functions: as much of the Amazon
// States Language as dynamill's has. A field that it does not know is an error. In a
// distributed map every item is an execution of its own, which sees nothing of its parent's.
type Machine struct {
	Definition []byte
	// Invoke calls the function. An *ExecutionError says how it failed.
	Invoke func(ctx context.Context, payload []byte) ([]byte, error)

	mu      sync.Mutex
	entered map[string]int
	atOnce  int // executions of pieces under way
	most    int
}

// ExecutionError ends a state, and the execution if nothing retries it.
type ExecutionError struct{ Name, Cause string }

func (e *ExecutionError) Error() string { return e.Name + ": " + e.Cause }

// Entered says how often the state of this name was entered, retries left out.
func (m *Machine) Entered(state string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.entered[state]
}

// MostAtOnce is how many executions of a map's items ran at the same time.
func (m *Machine) MostAtOnce() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.most
}

type states struct {
	Comment, StartAt string
	ProcessorConfig  *struct{ Mode, ExecutionType string }
	States           map[string]*state
}

type state struct {
	Type, Comment, Resource, Label, Next string
	End                                  bool
	Parameters, ItemSelector             map[string]any
	ResultSelector                       map[string]any
	ItemsPath                            string
	InputPath, OutputPath, ResultPath    json.RawMessage
	TimeoutSeconds                       int
	Retry                                []*retrier
	Catch                                []*catcher
	MaxConcurrency                       int
	ToleratedFailurePercentage           float64
	ItemProcessor                        *states
	Choices                              []struct {
		Variable, Next string
		BooleanEquals  *bool
	}
	Default string
}

type retrier struct {
	ErrorEquals     []string
	IntervalSeconds float64
	MaxAttempts     *int
	BackoffRate     float64
	MaxDelaySeconds float64
	JitterStrategy  string
}

type catcher struct {
	ErrorEquals []string
	ResultPath  json.RawMessage
	Next        string
}

// catches reports whether a list of error names holds one. Too much data ends an
// execution (Step Functions developer guide, "Handling errors").
func catches(names []string, err *ExecutionError) bool {
	return slices.Contains(names, err.Name) || slices.Contains(names, "States.ALL") && err.Name != errTooMuch
}

// Execute runs the machine from its start with an input.
func (m *Machine) Execute(ctx context.Context, input []byte) ([]byte, error) {
	var top states
	decoder := json.NewDecoder(strings.NewReader(string(m.Definition)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&top); err != nil {
		return nil, fmt.Errorf("reading the definition: %w", err)
	}
	var in any
	if err := json.Unmarshal(input, &in); err != nil {
		return nil, err
	}
	m.mu.Lock()
	m.entered = map[string]int{}
	m.mu.Unlock()
	out, err := m.run(ctx, &top, in)
	if err != nil {
		return nil, err
	}
	return json.Marshal(out)
}

func (m *Machine) run(ctx context.Context, of *states, input any) (any, error) {
	for name := of.StartAt; ; {
		s := of.States[name]
		if s == nil {
			return nil, fmt.Errorf("there is no state %q", name)
		}
		m.mu.Lock()
		m.entered[name]++
		m.mu.Unlock()
		if err := fits(input); err != nil {
			return nil, err
		}
		output, next, err := m.enter(ctx, s, input)
		if err != nil {
			return nil, err
		}
		if err := fits(output); err != nil {
			return nil, err
		}
		if s.Type == "Succeed" || s.End {
			return output, nil
		}
		input, name = output, next
	}
}

func fits(value any) error {
	text, err := json.Marshal(value)
	if err == nil && len(text) > payloadMax {
		err = &ExecutionError{errTooMuch, fmt.Sprintf("%d bytes", len(text))}
	}
	return err
}

func (m *Machine) enter(ctx context.Context, s *state, input any) (output any, next string, err error) {
	raw := input
	if input, err = path(s.InputPath, input, nil); err != nil {
		return nil, "", err
	}
	result := input
	switch s.Type {
	case "Succeed":
	case "Choice":
		next, err = s.choose(input)
		return input, next, err
	case "Task":
		result, err = m.retried(ctx, s, func() (any, error) { return m.invoke(ctx, s, input) })
	case "Map":
		result, err = m.retried(ctx, s, func() (any, error) { return m.items(ctx, s, input) })
	default:
		err = fmt.Errorf("states of type %q are not known here", s.Type)
	}
	if err == nil && s.ResultSelector != nil {
		result, err = fill(s.ResultSelector, result, nil)
	}
	if err != nil {
		return s.caught(raw, err)
	}
	if output, err = place(s.ResultPath, raw, result); err != nil {
		return nil, "", err
	}
	output, err = path(s.OutputPath, output, nil)
	return output, s.Next, err
}

// caught goes on where the state's catchers say.
func (s *state) caught(input any, err error) (output any, next string, _ error) {
	failed, ok := err.(*ExecutionError) //nolint:errorlint // nothing wraps it
	if !ok {
		return nil, "", err
	}
	for _, c := range s.Catch {
		if catches(c.ErrorEquals, failed) {
			output, err = place(c.ResultPath, input, map[string]any{"Error": failed.Name, "Cause": failed.Cause})
			return output, c.Next, err
		}
	}
	return nil, "", err
}

func (s *state) choose(input any) (string, error) {
	for _, c := range s.Choices {
		found, err := lookup(c.Variable, input, nil)
		if err != nil {
			return "", err
		}
		if is, ok := found.(bool); ok && c.BooleanEquals != nil && is == *c.BooleanEquals {
			return c.Next, nil
		}
	}
	if s.Default == "" {
		return "", &ExecutionError{"States.NoChoiceMatched", "no choice matched"}
	}
	return s.Default, nil
}

// retried does what the state's retriers say; each counts for itself.
func (m *Machine) retried(ctx context.Context, s *state, do func() (any, error)) (any, error) {
	retries := make([]int, len(s.Retry))
	for {
		result, err := do()
		failed, ok := err.(*ExecutionError) //nolint:errorlint // nothing wraps it
		if !ok {
			return result, err
		}
		at := slices.IndexFunc(s.Retry, func(r *retrier) bool { return catches(r.ErrorEquals, failed) })
		if at < 0 || retries[at] >= s.Retry[at].attempts() {
			return nil, err
		}
		if pace.Sleep(ctx, s.Retry[at].wait(retries[at])) != nil {
			return nil, ctx.Err()
		}
		retries[at]++
	}
}

func (r *retrier) attempts() int {
	const byDefault = 3
	if r.MaxAttempts == nil {
		return byDefault
	}
	return *r.MaxAttempts
}

// wait is the longest that the jitter may draw.
func (r *retrier) wait(retries int) time.Duration {
	wait := r.IntervalSeconds * math.Pow(r.BackoffRate, float64(retries))
	if r.MaxDelaySeconds > 0 {
		wait = min(wait, r.MaxDelaySeconds)
	}
	return time.Duration(wait * float64(time.Second))
}

func (m *Machine) invoke(ctx context.Context, s *state, input any) (any, error) {
	parameters, err := fill(s.Parameters, input, nil)
	if err != nil {
		return nil, err
	}
	if !strings.HasSuffix(s.Resource, ":states:::lambda:invoke") {
		return nil, fmt.Errorf("the resource %q is not known here", s.Resource)
	}
	payload, err := json.Marshal(parameters["Payload"])
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(s.TimeoutSeconds)*time.Second)
	defer cancel()
	answer, err := m.Invoke(ctx, payload)
	if err != nil {
		return nil, err
	}
	var answered any
	if err := json.Unmarshal(answer, &answered); err != nil {
		return nil, err
	}
	return map[string]any{"StatusCode": 200.0, "Payload": answered}, nil
}

// items carries out a distributed map.
func (m *Machine) items(ctx context.Context, s *state, input any) (any, error) {
	found, err := lookup(s.ItemsPath, input, nil)
	if err != nil {
		return nil, err
	}
	items, ok := found.([]any)
	if !ok || s.ItemProcessor.ProcessorConfig == nil || s.ItemProcessor.ProcessorConfig.Mode != "DISTRIBUTED" {
		return nil, fmt.Errorf("%s leads to no list, or the map is not distributed", s.ItemsPath)
	}
	places := make(chan struct{}, s.MaxConcurrency)
	results, failed := []any{}, 0
	var group sync.WaitGroup
	for _, item := range items {
		places <- struct{}{}
		group.Go(func() {
			defer func() { <-places }()
			m.count(1)
			defer m.count(-1)
			own, err := fill(s.ItemSelector, input, map[string]any{"Map": map[string]any{"Item": map[string]any{"Value": item}}})
			var result any
			if err == nil {
				result, err = m.run(ctx, s.ItemProcessor, any(own))
			}
			m.mu.Lock()
			defer m.mu.Unlock()
			if err != nil {
				failed++
				result = failedResult(own, err)
			}
			results = append(results, result)
		})
	}
	group.Wait()
	if float64(failed)*100 > s.ToleratedFailurePercentage*float64(len(items)) {
		return nil, &ExecutionError{"States.ExceedToleratedFailureThreshold", fmt.Sprintf("%d of %d items", failed, len(items))}
	}
	return results, fits(results)
}

// failedResult is what a map says of an item's execution that failed: all that is
// known of it, as if no transformation were asked for (Step Functions developer
// guide, "ResultWriter (Map)").
func failedResult(input map[string]any, err error) any {
	const arn, name = "arn:aws:states:eu-west-1:123456789012:", "app-dynamill-replay/Pieces"
	const id, when = "ad9b5f27-090b-3ac6-9beb-243cd77144a7", "2026-11-04T07:28:34.028Z"
	text, _ := json.Marshal(input)
	failed := map[string]any{
		"ExecutionArn": arn + "execution:" + name + ":" + id, "Name": id, "StateMachineArn": arn + "stateMachine:" + name,
		"Input": string(text), "InputDetails": map[string]any{"Included": true}, "Status": "FAILED", "RedriveCount": 0, "StartDate": when,
		"StopDate": when,
	}
	if named, ok := err.(*ExecutionError); ok { //nolint:errorlint // nothing wraps it
		failed["Error"], failed["Cause"] = named.Name, named.Cause
	}
	return failed
}

func (m *Machine) count(more int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.atOnce += more
	m.most = max(m.most, m.atOnce)
}
