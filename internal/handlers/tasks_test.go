package handlers

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const tasksPayload = `{"dynamill":"tasks"}`

// taskWorker has so many pieces left, of a second each; then it fails or is done.
type taskWorker struct {
	left    int
	waiting int
	failure error
}

func (w *taskWorker) WorkTasks(ctx context.Context) (pieces, waiting int, err error) {
	for ; w.left > 0; w.left-- {
		select {
		case <-time.After(time.Second):
			pieces++
		case <-ctx.Done():
			return pieces, w.waiting, ctx.Err()
		}
	}
	return pieces, w.waiting, w.failure
}

func TestTasksAreWorkedOffUntilTheMargin(t *testing.T) {
	failure := errors.New("throttled")
	for name, c := range map[string]struct {
		left    int
		waiting int
		limit   time.Duration
		failure error
		want    string // "" means the failure
		took    time.Duration
	}{
		"none":           {0, 0, time.Minute, nil, `{"pieces":0,"done":true}`, 0},
		"all":            {3, 0, time.Minute, nil, `{"pieces":3,"done":true}`, 3 * time.Second},
		"some wait":      {3, 2, time.Minute, nil, `{"pieces":3,"done":false,"waiting":2}`, 3 * time.Second},
		"time runs out":  {90, 0, time.Minute, nil, `{"pieces":57,"done":false}`, 57500 * time.Millisecond},
		"no deadline":    {90, 0, 0, nil, `{"pieces":90,"done":true}`, 90 * time.Second},
		"one that fails": {2, 0, time.Minute, failure, "", 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if c.limit > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.limit)
					defer cancel()
				}
				e := newEngine()
				var out bytes.Buffer
				h := newHandler(t, e, func(cfg *Config) {
					cfg.Tasks, cfg.Margin = &taskWorker{c.left, c.waiting, c.failure}, 2500*time.Millisecond
					cfg.Logger = slog.New(slog.NewTextHandler(&out, nil))
				})
				started := time.Now()
				answer, err := h.Invoke(ctx, []byte(tasksPayload))
				if string(answer) != c.want || !errors.Is(err, c.failure) || (c.failure == nil) != (err == nil) {
					t.Errorf("answer %s, %v, want %s, %v", answer, err, c.want, c.failure)
				}
				if took := time.Since(started); took != c.took {
					t.Errorf("it took %v, want %v", took, c.took)
				}
				if line := out.String(); !strings.Contains(line, "source=tasks pieces=") || !strings.Contains(line, " done=") ||
					strings.Contains(line, "error=") != (c.failure != nil) {
					t.Errorf("logged %s", line)
				}
				if len(e.calls) > 0 {
					t.Errorf("calls %q, want none", e.calls)
				}
			})
		})
	}
}

func TestOnlyTasksCanBeAskedFor(t *testing.T) {
	for name, c := range map[string]struct {
		payload string
		want    string
	}{
		"another command":     {`{"dynamill":"dance"}`, "dance"},
		"no string":           {`{"dynamill":{"tasks":1}}`, "unknown"},
		"inside a late batch": {late(tasksPayload), "want stream records"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHandler(t, newEngine(), func(cfg *Config) { cfg.Tasks = &taskWorker{} })
			answer, err := h.Invoke(t.Context(), []byte(c.payload))
			var refused *PayloadError
			if !errors.As(err, &refused) || !strings.Contains(refused.Reason, c.want) || answer != nil {
				t.Errorf("answer %s, %v, want an error about %s", answer, err, c.want)
			}
		})
	}
}

// A schedule may add what it likes beside the command, and spaces.
func TestTheCommandIsFoundAmongOtherFields(t *testing.T) {
	h := newHandler(t, newEngine(), func(cfg *Config) { cfg.Tasks = &taskWorker{} })
	answer, err := h.Invoke(t.Context(), []byte(` { "id": [1], "dynamill" : "tasks" , "x": {} } `))
	if err != nil || string(answer) != `{"pieces":0,"done":true}` {
		t.Errorf("answer %s, %v", answer, err)
	}
}
