// Package awscall judges failed calls to AWS by their types and codes, never by
// message texts, and sends calls again where that may help. It imports no other room.
package awscall

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/cenkalti/backoff/v4"
)

// Class is what an error asks for.
type Class uint8

// The classes of errors.
const (
	Fatal     Class = iota // the caller stops: it has no answer to this error
	Retry                  // throttling, conflict, network, a server's fault: the same call may succeed later
	Refused                // DynamoDB never takes this write as it is
	Condition              // a condition failed: another writer was faster
	Canceled               // a transaction was canceled; its reasons say why
)

// The API error codes that ask for another try, beside those that the AWS SDK
// sends again (DynamoDB developer guide, "Error handling with DynamoDB").
var (
	throttleCodes = []string{
		"ThrottlingException", "ThrottlingError", "Throttling", "RequestLimitExceeded",
		"ProvisionedThroughputExceededException", "ProvisionedThroughputExceeded",
	}
	conflictCodes = []string{
		"TransactionConflictException", "TransactionConflict", "TransactionInProgressException", "ReplicatedWriteConflictException",
	}
	troubleCodes = []string{"InternalServerError", "ServiceUnavailable", "ServiceUnavailableException", "LimitExceededException"}
	refusedCodes = []string{"ValidationException", "ItemCollectionSizeLimitExceededException"}
	// unservedCodes are those of a missing permission, in a reply and of a statement, and of an operation that an endpoint does not know.
	unservedCodes = []string{"AccessDeniedException", "AccessDenied", "UnknownOperationException"}
)

var retried = retry.IsErrorRetryables(retry.DefaultRetryables)

// Classify judges an error. Of a canceled transaction only its reasons can say more.
func Classify(err error) Class {
	switch api, ok := errors.AsType[smithy.APIError](err); {
	case errors.Is(err, context.Canceled):
		return Fatal // a deadline is a timeout of the network; a caller that waits looks at its own
	case errors.As(err, new(*ddb.ConditionalCheckFailedException)):
		return Condition
	case errors.As(err, new(*ddb.TransactionCanceledException)):
		return Canceled
	case tooLarge(err):
		return Refused
	case retried.IsErrorRetryable(err) == aws.TrueTernary, ofNetwork(err), errors.Is(err, io.ErrUnexpectedEOF):
		return Retry // ErrUnexpectedEOF: the connection broke off during the answer
	case !ok:
		return Fatal
	case RetryCode(api.ErrorCode()), api.ErrorFault() == smithy.FaultServer:
		return Retry
	case slices.Contains(refusedCodes, api.ErrorCode()):
		return Refused
	}
	return Fatal
}

// Unserved reports whether an error says that an operation never succeeds here: it is not permitted, or not known.
func Unserved(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && slices.Contains(unservedCodes, api.ErrorCode())
}

// ofNetwork reports a failure on the way, but for a name that does not exist.
func ofNetwork(err error) bool {
	lookup, ofName := errors.AsType[*net.DNSError](err)
	return errors.As(err, new(net.Error)) && !(ofName && lookup.IsNotFound)
}

func tooLarge(err error) bool {
	response, ok := errors.AsType[*smithyhttp.ResponseError](err)
	return ok && response.HTTPStatusCode() == http.StatusRequestEntityTooLarge
}

// Passes reports whether an error is worth another try of the same request.
// A canceled transaction is, if every reason is.
func Passes(err error) bool {
	canceled, ok := errors.AsType[*ddb.TransactionCanceledException](err)
	if !ok {
		return Classify(err) == Retry
	}
	return !slices.ContainsFunc(canceled.CancellationReasons, func(r ddb.CancellationReason) bool {
		return ReasonCode(r) != "None" && !RetryCode(ReasonCode(r))
	})
}

// RetryCode reports whether an error code asks for another try.
func RetryCode(code string) bool {
	return slices.Contains(throttleCodes, code) || slices.Contains(conflictCodes, code) || slices.Contains(troubleCodes, code)
}

// ReasonCode is the code of a reason why a transaction was canceled; "None" for an action that is no reason.
func ReasonCode(r ddb.CancellationReason) string {
	return cmp.Or(aws.ToString(r.Code), "None")
}

// ConflictOrThrottle reports whether an error, or a reason of a canceled transaction, says that another writer changed the same
// items, and whether one says that the capacity was exceeded.
func ConflictOrThrottle(err error) (conflict, throttled bool) {
	var codes []string
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		codes = append(codes, api.ErrorCode())
	}
	if canceled, ok := errors.AsType[*ddb.TransactionCanceledException](err); ok {
		for _, r := range canceled.CancellationReasons {
			codes = append(codes, ReasonCode(r))
		}
	}
	among := func(some []string) bool {
		return slices.ContainsFunc(codes, func(code string) bool { return slices.Contains(some, code) })
	}
	return among(conflictCodes), among(throttleCodes)
}

// The pauses between two tries grow from the first to the last, with jitter.
const (
	PauseFirst = 25 * time.Millisecond
	PauseLast  = 2 * time.Second
)

// Persist calls f until it succeeds, fails for good, the context ends, or the time
// is over. These tries come beside those of the AWS SDK itself.
func Persist[T any](ctx context.Context, atMost time.Duration, f func() (T, error)) (T, error) {
	policy := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(PauseFirst), backoff.WithMaxInterval(PauseLast), backoff.WithMaxElapsedTime(atMost))
	return backoff.RetryWithData(func() (out T, err error) {
		if ctx.Err() != nil {
			return out, backoff.Permanent(ctx.Err()) // not its cause: callers ask for context.Canceled
		}
		if out, err = f(); err != nil && !Passes(err) {
			return out, backoff.Permanent(err)
		}
		return out, err
	}, backoff.WithContext(policy, ctx))
}
