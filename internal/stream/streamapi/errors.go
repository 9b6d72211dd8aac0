package streamapi

import (
	"context"
	"errors"
	"fmt"

	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/smithy-go"

	"github.com/dynamill/dynamill/internal/awscall"
	"github.com/dynamill/dynamill/internal/stream/leases"
)

// ErrStreamNotFound says that no stream has the ARN that was given.
var ErrStreamNotFound = errors.New("the stream does not exist, or no longer")

// TrimmedError says that the stream no longer holds records that were not processed. What they would have caused
// must be derived from the table's items.
type TrimmedError struct {
	StreamARN  string
	Shard      string // the shard that lost records
	Checkpoint string // how far the shard was done: a sequence number, or TRIM_HORIZON if nothing of it was
	Err        error  // what the stream answered; nil if the shard is missing from the stream's list
}

func (e *TrimmedError) Error() string {
	reason := "the shard is no longer listed"
	if e.Err != nil {
		reason = e.Err.Error()
	}
	return fmt.Sprintf("stream %s no longer holds what follows %s in shard %s, and it was not processed (%s)",
		e.StreamARN, e.Checkpoint, e.Shard, reason)
}

func (e *TrimmedError) Unwrap() error { return e.Err }

// RecordError says that a stream record cannot be understood. The reader stops
// before it.
type RecordError struct {
	SequenceNumber string // "" if it is that which is missing
	Reason         string // a sentence
}

func (e *RecordError) Error() string {
	return fmt.Sprintf("stream record %s: %s", e.SequenceNumber, e.Reason)
}

// Permanent marks an error that no retry can cure.
func Permanent(err error) error { return &leases.PermanentError{Err: err} }

// Permanentf makes one.
func Permanentf(format string, args ...any) error { return Permanent(fmt.Errorf(format, args...)) }

// Stopper is implemented by a Processor's error that no retry can cure. Run
// returns it instead of retrying.
type Stopper interface{ StopReading() bool }

// StopsReading reports whether a processor's error is a Stopper that stops the reading.
func StopsReading(err error) bool {
	var s Stopper
	return errors.As(err, &s) && s.StopReading()
}

// Verdict is what a failed call to AWS means for the reader.
type Verdict uint8

// The verdicts.
const (
	VerdictRetry   Verdict = iota // throttling, network, a fault of the server: again after a while
	VerdictExpired                // the iterator is too old: take a new one
	VerdictTrimmed                // records are gone
	VerdictGone                   // the shard or stream is gone
	VerdictFatal                  // the same call would fail again
)

// Classify judges by type, and by the error codes of the API where the SDK has
// no type (throttling of streams), never by message text.
func Classify(err error) Verdict {
	switch {
	case is[*leases.PermanentError](err), errors.Is(err, leases.ErrLost):
		return VerdictFatal
	case is[*streams.ExpiredIteratorException](err):
		return VerdictExpired
	case is[*streams.TrimmedDataAccessException](err):
		return VerdictTrimmed
	case is[*streams.ResourceNotFoundException](err):
		return VerdictGone
	case errors.Is(err, context.DeadlineExceeded), // the reader bounds a call's time, whatever the client says of it
		!is[smithy.APIError](err), // no answer of the service: connections, credentials that cannot be fetched for the moment
		awscall.Passes(err):
		return VerdictRetry
	}
	return VerdictFatal
}

func is[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}
