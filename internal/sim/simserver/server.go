package simserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/aws/smithy-go"

	"github.com/dynamill/dynamill/internal/pace"
	"github.com/dynamill/dynamill/internal/sim/dynamosim"
)

// requestBytesMax is above the largest request of DynamoDB, 16 MB.
const requestBytesMax = 20 << 20

// Handler answers the requests of clients of DynamoDB and of its streams.
type Handler struct {
	sim        *dynamosim.Sim
	delay      func(accessKey, operation string, input any) time.Duration
	operations map[string]reflect.Value // methods of the Sim
}

// New makes a Handler. If delay is not nil, each request takes effect after the time that
// delay returns for it.
func New(sim *dynamosim.Sim, delay func(accessKey, operation string, input any) time.Duration) *Handler {
	h := &Handler{sim: sim, delay: delay, operations: map[string]reflect.Value{}}
	value := reflect.ValueOf(sim)
	for method := range value.Type().Methods() {
		if t := method.Type; t.IsVariadic() && t.NumIn() == 4 && t.NumOut() == 2 {
			h.operations[method.Name] = value.Method(method.Index)
		}
	}
	return h
}

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	output, err := h.answer(r)
	if err != nil {
		status, body := failure(err)
		w.WriteHeader(status)
		_, _ = w.Write(body) // the client is gone if it fails
		return
	}
	_, _ = w.Write(output)
}

// answer carries out a request and returns the body of the reply.
func (h *Handler) answer(r *http.Request) ([]byte, error) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	method, ok := h.operations[operation]
	if !ok {
		return nil, &smithy.GenericAPIError{
			Code: "UnknownOperationException", Message: fmt.Sprintf("the simulator has no operation %q", operation),
		}
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, requestBytesMax))
	if err != nil {
		return nil, fmt.Errorf("reading the request: %w", err)
	}
	input := reflect.New(method.Type().In(1).Elem())
	if err := decode(body, input.Elem()); err != nil {
		return nil, &smithy.GenericAPIError{Code: "SerializationException", Message: err.Error()}
	}
	if h.delay != nil {
		if err := pace.Sleep(r.Context(), h.delay(accessKey(r), operation, input.Interface())); err != nil {
			return nil, err
		}
	}
	// A request that is under way takes effect, whether its client still waits or not.
	answers := method.Call([]reflect.Value{reflect.ValueOf(context.WithoutCancel(r.Context())), input})
	if err, failed := answers[1].Interface().(error); failed {
		return nil, err
	}
	return encode(nil, answers[0].Elem()), nil
}

// accessKey returns the access key in a request's signature, "" if there is none.
func accessKey(r *http.Request) string {
	_, credential, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
	key, _, _ := strings.Cut(credential, "/")
	return key
}

// failure returns an error as DynamoDB answers it.
func failure(err error) (status int, body []byte) {
	var operation *smithy.OperationError
	if errors.As(err, &operation) {
		err = operation.Err
	}
	var api smithy.APIError
	if !errors.As(err, &api) {
		api = &smithy.GenericAPIError{Code: "InternalServerError", Message: err.Error()}
	}
	status = http.StatusBadRequest
	if api.ErrorCode() == "InternalServerError" {
		status = http.StatusInternalServerError
	}
	code, _ := json.Marshal("com.amazonaws.dynamodb.v20120810#" + api.ErrorCode()) // a string always becomes JSON
	body = append(append([]byte(`{"__type":`), code...), `,"message":`...)
	body = appendString(body, cmp.Or(api.ErrorMessage(), api.ErrorCode()))
	if _, generic := api.(*smithy.GenericAPIError); !generic {
		// An exception's fields repeat its message, and may hold an item or the reasons of a cancellation.
		if fields := encode(nil, reflect.ValueOf(api)); len(fields) > len("{}") {
			return status, append(append(body, ','), fields[1:]...)
		}
	}
	return status, append(body, '}')
}
