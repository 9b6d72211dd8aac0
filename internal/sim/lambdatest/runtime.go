package lambdatest

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// functionARN is what functions are told that they are called.
const functionARN = "arn:aws:lambda:us-east-1:000000000000:function:lambdatest"

// apiVersion begins every path (Lambda developer guide, "Using the Lambda
// runtime API for custom runtimes").
const apiVersion = "/2018-06-01"

const (
	payloadBytesMax = 6 << 20 // of an answer (Lambda developer guide, "Lambda quotas")
	headerTimeout   = 10 * time.Second
)

// FunctionError is an invocation that ended without an answer.
type FunctionError struct {
	Type    string // the error's type as the function or Lambda names it
	Message string // the error's document, or what became of the process
}

func (e *FunctionError) Error() string {
	return fmt.Sprintf("function error %s: %s", e.Type, e.Message)
}

// Runtime is the Runtime API of one execution environment: an HTTP server that
// hands out one invocation at a time. Its address belongs into the environment
// variable AWS_LAMBDA_RUNTIME_API of the process that it is for.
type Runtime struct {
	listener net.Listener
	server   *http.Server
	served   chan struct{}

	work  chan *invocation // handed to the process when it asks
	asked chan struct{}    // holds one while the process waits for work
	init  chan error       // holds the error that the process began with

	mu      sync.Mutex
	current *invocation
}

// invocation is one payload and what becomes of it.
type invocation struct {
	id       string
	payload  []byte
	deadline time.Time
	outcome  chan outcome // holds one
}

type outcome struct {
	answer []byte
	err    error
}

// NewRuntime starts a Runtime API on a free port of this machine.
func NewRuntime(ctx context.Context) (*Runtime, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting a runtime API: %w", err)
	}
	r := &Runtime{
		listener: listener, served: make(chan struct{}),
		work: make(chan *invocation), asked: make(chan struct{}, 1), init: make(chan error, 1),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+apiVersion+"/runtime/invocation/next", r.next)
	mux.HandleFunc("POST "+apiVersion+"/runtime/invocation/{id}/response", r.response)
	mux.HandleFunc("POST "+apiVersion+"/runtime/invocation/{id}/error", r.failure)
	mux.HandleFunc("POST "+apiVersion+"/runtime/init/error", r.initFailure)
	r.server = &http.Server{Handler: mux, ReadHeaderTimeout: headerTimeout}
	go func() {
		defer close(r.served)
		_ = r.server.Serve(listener) // it ends with ErrServerClosed
	}()
	return r, nil
}

// Address is the host and port of the API.
func (r *Runtime) Address() string { return r.listener.Addr().String() }

// Close ends the API. A process that waits for work sees its connection closed.
func (r *Runtime) Close() {
	_ = r.server.Close() // there is nothing left to answer
	<-r.served
}

// Invoke hands the payload to the process as soon as it asks for work, and
// returns its answer. The error is a *FunctionError where the function failed,
// and the cause of ctx where that ended before. The deadline is what the process is
// told; to enforce it is the caller's. One invocation at a time.
func (r *Runtime) Invoke(ctx context.Context, payload []byte, deadline time.Time) ([]byte, error) {
	in := &invocation{id: rand.Text(), payload: payload, deadline: deadline, outcome: make(chan outcome, 1)}
	select {
	case r.work <- in:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	select {
	case out := <-in.outcome:
		return out.answer, out.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Ready waits until the process asks for work: until then it may not be frozen.
// The error is a *FunctionError where the process reported that it cannot start.
func (r *Runtime) Ready(ctx context.Context) error {
	select {
	case <-r.asked:
		return nil
	case err := <-r.init:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (r *Runtime) next(w http.ResponseWriter, req *http.Request) {
	select {
	case r.asked <- struct{}{}:
	default: // it asked before, unnoticed
	}
	select {
	case <-req.Context().Done():
	case in := <-r.work:
		r.mu.Lock()
		r.current = in
		r.mu.Unlock()
		h := w.Header()
		h.Set("Content-Type", "application/json")
		h.Set("Lambda-Runtime-Aws-Request-Id", in.id)
		h.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(in.deadline.UnixMilli(), 10))
		h.Set("Lambda-Runtime-Invoked-Function-Arn", functionARN)
		h.Set("Lambda-Runtime-Trace-Id", fmt.Sprintf("Root=1-%08x-000000000000000000000000;Sampled=0", time.Now().Unix()))
		_, _ = w.Write(in.payload) // a process that died meanwhile is noticed elsewhere
	}
}

// take returns the invocation with an id, which must be under way and is no longer.
func (r *Runtime) take(w http.ResponseWriter, id string) *invocation {
	r.mu.Lock()
	defer r.mu.Unlock()
	in := r.current
	if in == nil || in.id != id {
		refuse(w, http.StatusBadRequest, "InvalidRequestID")
		return nil
	}
	r.current = nil
	return in
}

func (r *Runtime) response(w http.ResponseWriter, req *http.Request) {
	answer, err := io.ReadAll(http.MaxBytesReader(w, req.Body, payloadBytesMax))
	var tooLarge *http.MaxBytesError
	in := r.take(w, req.PathValue("id"))
	switch {
	case in == nil:
	case errors.As(err, &tooLarge):
		in.outcome <- outcome{err: &FunctionError{"Function.ResponseSizeTooLarge", err.Error()}}
		refuse(w, http.StatusRequestEntityTooLarge, "RequestEntityTooLarge")
	case err != nil:
		in.outcome <- outcome{err: &FunctionError{"Runtime.TruncatedResponse", err.Error()}}
	default:
		in.outcome <- outcome{answer: answer}
		w.WriteHeader(http.StatusAccepted)
	}
}

func (r *Runtime) failure(w http.ResponseWriter, req *http.Request) {
	failed := functionError(w, req)
	if in := r.take(w, req.PathValue("id")); in != nil {
		in.outcome <- outcome{err: failed}
		w.WriteHeader(http.StatusAccepted)
	}
}

func (r *Runtime) initFailure(w http.ResponseWriter, req *http.Request) {
	failed := functionError(w, req)
	select {
	case r.init <- failed:
		w.WriteHeader(http.StatusAccepted)
	default:
		refuse(w, http.StatusForbidden, "InvalidStateTransition")
	}
}

func functionError(w http.ResponseWriter, req *http.Request) *FunctionError {
	text, err := io.ReadAll(http.MaxBytesReader(w, req.Body, payloadBytesMax))
	if err != nil {
		text = []byte(err.Error())
	}
	var document struct {
		Type string `json:"errorType"`
	}
	_ = json.Unmarshal(text, &document) // it need not be JSON
	kind := cmp.Or(req.Header.Get("Lambda-Runtime-Function-Error-Type"), document.Type, "Unhandled")
	return &FunctionError{kind, string(text)}
}

func refuse(w http.ResponseWriter, status int, kind string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"errorType":%q,"errorMessage":%q}`, kind, http.StatusText(status))
}
