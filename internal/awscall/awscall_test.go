package awscall_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/dynamill/dynamill/internal/awscall"
)

func coded(code string) error { return &smithy.GenericAPIError{Code: code} }

func canceled(codes ...string) error {
	out := &ddb.TransactionCanceledException{CancellationReasons: []ddb.CancellationReason{{}}}
	for _, code := range codes {
		out.CancellationReasons = append(out.CancellationReasons, ddb.CancellationReason{Code: &code})
	}
	return out
}

func answered(status int) error {
	return &smithyhttp.ResponseError{Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}}, Err: coded("UnknownError")}
}

func TestClassify(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		want   awscall.Class
		passes bool
	}{
		"throttled":                {&ddb.ProvisionedThroughputExceededException{}, awscall.Retry, true},
		"throttled by the account": {coded("RequestLimitExceeded"), awscall.Retry, true},
		"throttled stream":         {&streams.LimitExceededException{}, awscall.Retry, true},
		"conflict":                 {&ddb.TransactionConflictException{}, awscall.Retry, true},
		"replica conflict":         {coded("ReplicatedWriteConflictException"), awscall.Retry, true},
		"server's fault":           {&smithy.GenericAPIError{Code: "New", Fault: smithy.FaultServer}, awscall.Retry, true},
		"internal error":           {&ddb.InternalServerError{}, awscall.Retry, true},
		"bad gateway":              {answered(http.StatusBadGateway), awscall.Retry, true},
		"network":                  {&net.OpError{Op: "read", Err: errors.New("lost")}, awscall.Retry, true},
		"deadline":                 {context.DeadlineExceeded, awscall.Retry, true},
		"half an answer":           {&smithy.DeserializationError{Err: io.ErrUnexpectedEOF}, awscall.Retry, true},
		"no such server":           {&net.DNSError{IsNotFound: true}, awscall.Fatal, false},
		"stop":                     {&smithy.OperationError{Err: &aws.RequestCanceledError{Err: context.Canceled}}, awscall.Fatal, false},
		"condition":                {&ddb.ConditionalCheckFailedException{}, awscall.Condition, false},
		"invalid":                  {coded("ValidationException"), awscall.Refused, false},
		"10 GB":                    {&ddb.ItemCollectionSizeLimitExceededException{}, awscall.Refused, false},
		"too large a request":      {answered(http.StatusRequestEntityTooLarge), awscall.Refused, false},
		"missing":                  {&ddb.ResourceNotFoundException{}, awscall.Fatal, false},
		"denied":                   {coded("AccessDeniedException"), awscall.Fatal, false},
		"no error of AWS":          {errors.New("defect"), awscall.Fatal, false},
		"transaction in conflict":  {canceled("TransactionConflict", "ThrottlingError"), awscall.Canceled, true},
		"transaction refused":      {canceled("TransactionConflict", "ConditionalCheckFailed"), awscall.Canceled, false},
	} {
		t.Run(name, func(t *testing.T) {
			err := fmt.Errorf("writing: %w", c.err)
			if got := awscall.Classify(err); got != c.want {
				t.Errorf("class %d, want %d", got, c.want)
			}
			if got := awscall.Passes(err); got != c.passes {
				t.Errorf("passes: %v, want %v", got, c.passes)
			}
		})
	}
}

func TestLoadReadsEveryReason(t *testing.T) {
	if conflict, throttled := awscall.ConflictOrThrottle(canceled("TransactionConflict", "ThrottlingError")); !conflict || !throttled {
		t.Errorf("conflict %v, throttled %v", conflict, throttled)
	}
	if conflict, throttled := awscall.ConflictOrThrottle(coded("InternalServerError")); conflict || throttled {
		t.Errorf("conflict %v, throttled %v", conflict, throttled)
	}
}

func TestPersistEnds(t *testing.T) {
	for name, c := range map[string]struct {
		failures  int
		err       error
		calls     int // 0: as many as the time allows
		succeeded bool
	}{
		"when the call succeeds":        {3, coded("ThrottlingException"), 4, true},
		"when the error is for good":    {3, coded("AccessDeniedException"), 1, false},
		"when the time is over":         {1 << 30, coded("ThrottlingException"), 0, false},
		"when the context was canceled": {1 << 30, context.Canceled, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls, began := 0, time.Now()
				out, err := awscall.Persist(t.Context(), time.Minute, func() (string, error) {
					if calls++; calls <= c.failures {
						return "", c.err
					}
					return "answer", nil
				})
				switch {
				case c.succeeded && (err != nil || out != "answer"):
					t.Errorf("got %q, %v", out, err)
				case !c.succeeded && !errors.Is(err, c.err):
					t.Errorf("got %v, want %v", err, c.err)
				case c.calls > 0 && calls != c.calls:
					t.Errorf("%d calls, want %d", calls, c.calls)
				case c.calls == 0 && (calls < 20 || time.Since(began) > time.Minute):
					t.Errorf("%d calls in %s", calls, time.Since(began))
				}
			})
		})
	}
}

func TestPersistStopsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		calls := 0
		throttled := func() (int, error) { calls++; return 0, coded("ThrottlingException") }
		if _, err := awscall.Persist(ctx, time.Minute, throttled); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		before := calls
		if _, err := awscall.Persist(ctx, time.Minute, throttled); !errors.Is(err, context.DeadlineExceeded) || calls != before {
			t.Errorf("got %v after %d more calls, want none", err, calls-before)
		}
	})
}
