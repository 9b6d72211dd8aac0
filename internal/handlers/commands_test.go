package handlers

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

const lateCommand = `{"dynamill":"late","object":"s3://bucket/key"}`

// objects are by name what there is to read.
type objects map[string]string

func (o objects) ReadObject(_ context.Context, name string) ([]byte, error) {
	if content, ok := o[name]; ok {
		return []byte(content), nil
	}
	return nil, errors.New("there is no " + name)
}

func TestALateBatchMayBeNamed(t *testing.T) {
	for name, payload := range map[string]string{
		"plain":                    lateCommand,
		"with spaces and escapes":  ` { "object" : "s3:\/\/bucket\/k\u0065y", "dynamill" : "late" } `,
		"among what others wanted": `{"id":[1],"dynamill":"late","x":{},"object":"s3://bucket/key"}`,
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine()
			h := newHandler(t, e, func(cfg *Config) {
				cfg.ReadObject = objects{"s3://bucket/key": late(event(insert("a", "1")))}.ReadObject
			})
			answer, err := h.Invoke(t.Context(), []byte(payload))
			if err != nil || string(answer) != failures() {
				t.Errorf("answer %s, %v", answer, err)
			}
			if got := strings.Join(e.calls, "; "); got != "rederive USER#a/PROFILE@1 to a at 1" {
				t.Errorf("calls %q", got)
			}
		})
	}
}

func TestWhatIsNamedMustBeALateBatch(t *testing.T) {
	for name, c := range map[string]struct{ payload, object, want string }{
		"an event": {lateCommand, event(insert("a", "1")),
			"no late batch, as an event source mapping leaves it in S3: found a payload of kind stream"},
		"an event and a report": {lateCommand, strings.Replace(late("{}"), `"payload"`, `"Records":[],"payload"`, 1), "of kind stream"},
		"a pipe's batch":        {lateCommand, list(insert("a", "1")), "of kind pipe"},
		"tasks":                 {lateCommand, tasksPayload, "of kind tasks"},
		"a name again":          {lateCommand, lateCommand, "of kind name of a late batch"},
		"a report of a report":  {lateCommand, late(late(event())), "without its records"},
		"no JSON":               {lateCommand, "hello", "s3://bucket/key is no late batch: payload: want an object or a list"},
		"nothing":               {lateCommand, "", "it is empty"},
		"an object that is not there": {`{"dynamill":"late","object":"s3://bucket/none"}`, "",
			"reading the late batch s3://bucket/none: there is no s3://bucket/none"},
		"no name": {`{"dynamill":"late"}`, "",
			`"late" names no object: want {"dynamill":"tasks"} or {"dynamill":"late","object":`},
		"a name that is no text": {`{"dynamill":"late","object":["s3://bucket/key"]}`, "", "names no object"},
		"an unknown command": {`{"dynamill":"later","object":"s3://bucket/key"}`, "",
			`"\"later\"" is unknown: want {"dynamill":"tasks"} or {"dynamill":"late","object":`},
		"records beside it":  {`{"dynamill":"late","object":"s3://bucket/key","Records":[]}`, "", "and records in one payload"},
		"a report beside it": {`{"dynamill":"tasks","DDBStreamBatchInfo":{},"payload":{}}`, "", "and records in one payload"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine()
			h := newHandler(t, e, func(cfg *Config) {
				cfg.ReadObject, cfg.Tasks = objects{"s3://bucket/key": c.object}.ReadObject, &taskWorker{}
			})
			answer, err := h.Invoke(t.Context(), []byte(c.payload))
			if err == nil || !strings.Contains(err.Error(), c.want) || answer != nil {
				t.Errorf("answer %s, %v, want an error about %s", answer, err, c.want)
			}
			if len(e.calls) > 0 {
				t.Errorf("calls %q, want none", e.calls)
			}
		})
	}
}

func TestNobodyReadsObjectsUnasked(t *testing.T) {
	h := newHandler(t, newEngine(), func(*Config) {})
	answer, err := h.Invoke(t.Context(), []byte(lateCommand))
	if refused := new(PayloadError); !errors.As(err, &refused) || !strings.Contains(refused.Reason, "Config.ReadObject") || answer != nil {
		t.Errorf("answer %s, %v", answer, err)
	}
}

// readSlowly hangs until it is told to stop.
func readSlowly(ctx context.Context, _ string) ([]byte, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestReadingAnObjectStopsBeforeTheDeadline(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	h := newHandler(t, newEngine(), func(cfg *Config) { cfg.ReadObject, cfg.Margin = readSlowly, time.Minute-50*time.Millisecond })
	if _, err := h.Invoke(ctx, []byte(lateCommand)); !errors.Is(err, errTimeUp) || ctx.Err() != nil {
		t.Errorf("error %v", err)
	}
}
