package lambdatest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// client asks a Runtime by hand.
type client struct {
	*testing.T
	base string
}

func newClient(t *testing.T) (*Runtime, client) {
	t.Helper()
	r, err := NewRuntime(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r, client{t, "http://" + r.Address() + "/2018-06-01/runtime/"}
}

func (c client) next() (id, payload string) {
	c.Helper()
	out, err := http.Get(c.base + "invocation/next")
	if err != nil {
		c.Fatal(err)
	}
	defer out.Body.Close()
	body, err := io.ReadAll(out.Body)
	if err != nil {
		c.Fatal(err)
	}
	for _, name := range []string{"Aws-Request-Id", "Deadline-Ms", "Invoked-Function-Arn", "Trace-Id"} {
		if out.Header.Get("Lambda-Runtime-"+name) == "" {
			c.Errorf("header Lambda-Runtime-%s is missing", name)
		}
	}
	return out.Header.Get("Lambda-Runtime-Aws-Request-Id"), string(body)
}

func (c client) post(path, body string, want int) {
	c.Helper()
	out, err := http.Post(c.base+path, "application/json", strings.NewReader(body))
	if err != nil {
		c.Fatal(err)
	}
	out.Body.Close()
	if out.StatusCode != want {
		c.Errorf("%s: status %d, want %d", path, out.StatusCode, want)
	}
}

func TestTheRuntimeTakesOneAnswerForEachInvocation(t *testing.T) {
	r, c := newClient(t)
	got := make(chan outcome, 1)
	invoke := func() {
		answer, err := r.Invoke(t.Context(), []byte(`{"a":1}`), time.Now().Add(time.Second))
		got <- outcome{answer, err}
	}
	go invoke()
	id, payload := c.next()
	if payload != `{"a":1}` {
		t.Errorf("payload %s", payload)
	}
	c.post("invocation/other/response", `1`, http.StatusBadRequest)
	c.post("invocation/"+id+"/response", `{"b":2}`, http.StatusAccepted)
	c.post("invocation/"+id+"/response", `{"b":3}`, http.StatusBadRequest)
	if out := <-got; out.err != nil || string(out.answer) != `{"b":2}` {
		t.Errorf("answer %s, %v", out.answer, out.err)
	}

	go invoke()
	id, _ = c.next()
	c.post("invocation/"+id+"/error", `{"errorMessage":"m","errorType":"T"}`, http.StatusAccepted)
	var failed *FunctionError
	if out := <-got; !errors.As(out.err, &failed) || !strings.Contains(failed.Message, `"m"`) {
		t.Errorf("error %v", out.err)
	}
}

func TestTheRuntimeTellsThatAProcessCannotStart(t *testing.T) {
	r, c := newClient(t)
	c.post("init/error", `{"errorMessage":"no rules"}`, http.StatusAccepted)
	c.post("init/error", `{"errorMessage":"no rules"}`, http.StatusForbidden)
	var failed *FunctionError
	if err := r.Ready(t.Context()); !errors.As(err, &failed) || !strings.Contains(failed.Message, "no rules") {
		t.Errorf("error %v", err)
	}
}

func TestAnInvocationEndsWithItsContext(t *testing.T) {
	r, _ := newClient(t)
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if _, err := r.Invoke(ctx, nil, time.Now()); !errors.Is(err, gone) {
		t.Errorf("error %v", err)
	}
}
