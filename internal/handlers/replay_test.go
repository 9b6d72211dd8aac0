package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// replays notes what it is asked for.
type replays struct {
	asked   []string
	failure error
	took    time.Duration
	until   time.Duration // from the call on
}

func (r *replays) BeginReplay(_ context.Context, request ReplayRequest) (ReplayStep, error) {
	r.asked = append(r.asked, fmt.Sprintf("begin %+v", request))
	return ReplayStep{Step: json.RawMessage(`{"a":1}`), Pieces: []string{"one", "two"}, Left: 3}, r.failure
}

func (r *replays) NextReplay(_ context.Context, step json.RawMessage) (ReplayStep, error) {
	r.asked = append(r.asked, "next "+string(step))
	return ReplayStep{Finished: true}, r.failure
}

func (r *replays) WorkReplay(ctx context.Context, step json.RawMessage, piece string, until time.Time) (ReplayPiece, error) {
	r.asked = append(r.asked, "work "+piece+" of "+string(step))
	if !until.IsZero() {
		r.until = time.Until(until)
	}
	select {
	case <-ctx.Done():
		return ReplayPiece{}, ctx.Err()
	case <-time.After(r.took):
		return ReplayPiece{Done: true, Items: 7}, r.failure
	}
}

func TestAReplayIsWorkedOffByCommands(t *testing.T) {
	for name, c := range map[string]struct{ payload, asked, answer, log string }{
		"begin": {`{"dynamill":"replay","begin":{"source":"scan","segments":4,"changeRules":true,"restart":true}}`,
			"begin {Source:scan Segments:4 Rules:[] ChangeRules:true Restart:true}",
			`{"step":{"a":1},"pieces":["one","two"],"left":3,"finished":false}`, "source=replay pieces=2 left=3 finished=false"},
		"begin with nothing said": {` {"dynamill": "replay", "begin": {}} `,
			"begin {Source: Segments:0 Rules:[] ChangeRules:false Restart:false}",
			`{"step":{"a":1},"pieces":["one","two"],"left":3,"finished":false}`, "pieces=2"},
		"begin with an export": {`{"begin":{"source":"s3://b/p","rules":["r"]},"dynamill":"replay"}`,
			"begin {Source:s3://b/p Segments:0 Rules:[r] ChangeRules:false Restart:false}",
			`{"step":{"a":1},"pieces":["one","two"],"left":3,"finished":false}`, "pieces=2"},
		"next": {`{"dynamill":"replay","next":{"a":1}}`, `next {"a":1}`, `{"step":{},"pieces":[],"left":0,"finished":true}`,
			"pieces=0 left=0 finished=true"},
		"work": {`{"dynamill":"replay","work":{"a":1},"piece":"two"}`, `work two of {"a":1}`, `{"done":true,"items":7}`,
			"source=replay piece=two items=7 done=true"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			r := &replays{}
			h := newHandler(t, newEngine(), func(cfg *Config) {
				cfg.Replays, cfg.Logger = r, slog.New(slog.NewTextHandler(&out, nil))
			})
			answer, err := h.Invoke(t.Context(), []byte(c.payload))
			if err != nil || string(answer) != c.answer || strings.Join(r.asked, "; ") != c.asked {
				t.Errorf("asked %q, answer %s, %v", r.asked, answer, err)
			}
			if !strings.Contains(out.String(), c.log) {
				t.Errorf("logged %s", out.String())
			}
		})
	}
}

func TestAReplayIsReadStrictly(t *testing.T) {
	for payload, want := range map[string]string{
		`{"dynamill":"replay"}`:                                                               "does not say what",
		`{"dynamill":"replay","begin":null}`:                                                  "does not say what",
		`{"dynamill":"replay","begin":{},"next":{}}`:                                          "does not say what",
		`{"dynamill":"replay","work":{}}`:                                                     "does not say what",
		`{"dynamill":"replay","next":{},"piece":"one"}`:                                       "does not say what",
		`{"dynamill":"replay","begin":{},"id":1}`:                                             `unknown field "id"`,
		`{"dynamill":"replay","begin":{"segment":1}}`:                                         `unknown field "segment"`,
		`{"dynamill":"replay","begin":{"segments":"1"}}`:                                      "cannot unmarshal",
		`{"dynamill":"replay","begin":{"segments":-1}}`:                                       "-1 segments",
		`{"dynamill":"replay","begin":{"source":"parked"}}`:                                   "neither scan nor",
		`{"dynamill":"replay","begin":{"source":"s3://b","segments":2}}`:                      "only a scan has them",
		`{"dynamill":"replay","begin":{"source":"s3://b","changeRules":true,"restart":true}}`: "by a scan for all rules only",
		`{"dynamill":"replay","begin":{"rules":["r"],"changeRules":true,"restart":true}}`:     "by a scan for all rules only",
		`{"dynamill":"replay","begin":{},"Records":[]}`:                                       "and records in one payload",
		`{"dynamill":"replays","begin":{}}`:                                                   "is unknown",
		`{"dynamill":"replay","begin":{},"object":"s3://b/k"}`:                                `unknown field "object"`,
		`{"dynamill":"replay","begin":{},"payload":{}}`:                                       `unknown field "payload"`,
		`{"dynamill":"replay","work":{},"piece":1}`:                                           "cannot unmarshal",
	} {
		r := &replays{}
		h := newHandler(t, newEngine(), func(cfg *Config) { cfg.Replays = r })
		answer, err := h.Invoke(t.Context(), []byte(payload))
		refused, ok := err.(*PayloadError) //nolint:errorlint // a state machine sees the outermost type
		if !ok || !strings.Contains(refused.Reason, want) || answer != nil || len(r.asked) > 0 {
			t.Errorf("%s: answer %s, asked %q, %v, want an error about %s", payload, answer, r.asked, err, want)
		}
		if ChangesRules([]byte(payload)) {
			t.Errorf("%s is said to change rules", payload)
		}
	}
}

func TestOnlyAReplayThatMayChangesRules(t *testing.T) {
	for payload, want := range map[string]bool{
		`{"dynamill":"replay","begin":{"changeRules":true,"restart":true}}`: true,
		`{"dynamill":"replay","begin":{"changeRules":false}}`:               false,
		`{"dynamill":"replay","begin":{}}`:                                  false,
		`{"dynamill":"tasks","begin":{"changeRules":true,"restart":true}}`:  false,
		`{"begin":{"changeRules":true,"restart":true}}`:                     false,
		`{"dynamill":"tasks"}`:                                              false,
		`{"dynamill":"replay","begin":{"changeRules":true},"window":{}}`:    false,
		event(insert("a", "1"), malformed("m", "2")):                        false,
		``: false,
	} {
		if got := ChangesRules([]byte(payload)); got != want {
			t.Errorf("%s: %v", payload, got)
		}
	}
}

// A state machine knows errors by the type of the outermost.
func TestErrorsOfAReplayKeepTheirType(t *testing.T) {
	failure := &PayloadError{"no such rule"}
	h := newHandler(t, newEngine(), func(cfg *Config) { cfg.Replays = &replays{failure: failure} })
	for _, command := range []string{`"begin":{}`, `"next":{}`, `"work":{},"piece":"one"`} {
		//nolint:errorlint // see above
		if answer, err := h.Invoke(t.Context(), []byte(`{"dynamill":"replay",`+command+`}`)); err != error(failure) || answer != nil {
			t.Errorf("%s: answer %s, %v", command, answer, err)
		}
	}
}

func TestAReplayBeginsNoPageShortlyBeforeTheDeadline(t *testing.T) {
	for limit, want := range map[time.Duration]time.Duration{
		15 * time.Minute: 14*time.Minute - time.Second, // the handler keeps a second for itself
		10 * time.Second: 8100 * time.Millisecond,
		0:                0,
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx := t.Context()
			if limit > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, limit)
				defer cancel()
			}
			r := &replays{}
			h := newHandler(t, newEngine(), func(cfg *Config) { cfg.Replays = r })
			if _, err := h.Invoke(ctx, []byte(`{"dynamill":"replay","work":{},"piece":"one"}`)); err != nil || r.until != want {
				t.Errorf("of %v: %v are left to begin pages, want %v (%v)", limit, r.until, want, err)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		h := newHandler(t, newEngine(), func(cfg *Config) { cfg.Replays = &replays{took: time.Hour} })
		if _, err := h.Invoke(ctx, []byte(`{"dynamill":"replay","work":{},"piece":"one"}`)); !errors.Is(err, errTimeUp) || ctx.Err() != nil {
			t.Errorf("error %v", err)
		}
	})
}
