package projections

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// SetupError says that the engine cannot start as things are around it.
type SetupError struct {
	Problem string // a sentence
	Remedy  string // what to do about it
	Err     error  // the cause, if another error was
}

func (e *SetupError) Error() string { return e.Problem + ": " + e.Remedy }
func (e *SetupError) Unwrap() error { return e.Err }

// RulesChangedError says that the rule file differs from the rules in force.
type RulesChangedError struct {
	StateTable       string
	Changed, Removed []string // rule names
}

func (e *RulesChangedError) Error() string {
	var what []string
	if len(e.Changed) > 0 {
		what = append(what, "changed: "+strings.Join(e.Changed, ", "))
	}
	if len(e.Removed) > 0 {
		what = append(what, "removed: "+strings.Join(e.Removed, ", "))
	}
	return fmt.Sprintf("the rule file differs from the rules in force on this table (%s): `dynamill plan` says what it would change, and `dynamill replay` carries it out; "+
		"or restore the rules that state table %s knows", strings.Join(what, "; "), e.StateTable)
}

// ErrEpochMoved is returned by Process when another process has registered
// newer rules. The records are not done; the process must stop and be started
// again with the new rule file.
var ErrEpochMoved error = epochMovedError{}

type epochMovedError struct{}

func (epochMovedError) Error() string {
	return "another process has registered newer rules for this table: restart with the current rule file"
}

// StopReading tells a stream reader that trying again is of no use.
func (epochMovedError) StopReading() bool { return true }

// ErrNotParked is returned for an id under which nothing is parked.
var ErrNotParked = errors.New("nothing is parked under this id")

// class is what an error asks for.
type class uint8

const (
	classFatal     class = iota // stop: nobody planned for it
	classRetry                  // throttling, conflict, network, a server's fault: later it may work
	classPark                   // this write can never succeed as it is
	classCondition              // a condition failed: somebody was faster
	classCanceled               // a transaction was canceled; its reasons say why
)

// The API error codes that ask for another try (DynamoDB developer guide, "Error handling with DynamoDB").
var (
	throttleCodes = map[string]bool{
		"ThrottlingException": true, "ThrottlingError": true, "Throttling": true, "RequestLimitExceeded": true,
		"ProvisionedThroughputExceededException": true, "ProvisionedThroughputExceeded": true,
	}
	conflictCodes = map[string]bool{
		"TransactionConflictException": true, "TransactionConflict": true, "TransactionInProgressException": true,
		"ReplicatedWriteConflictException": true,
	}
	troubleCodes = map[string]bool{
		"InternalServerError": true, "ServiceUnavailable": true, "ServiceUnavailableException": true, "LimitExceededException": true,
	}
)

func asksForRetry(code string) bool {
	return throttleCodes[code] || conflictCodes[code] || troubleCodes[code]
}

// codesOf are the codes of an API error: of a canceled transaction, those of its reasons.
func codesOf(err error) (codes []string) {
	var canceled *ddb.TransactionCanceledException
	var api smithy.APIError
	switch {
	case errors.As(err, &canceled):
		for _, r := range canceled.CancellationReasons {
			codes = append(codes, codeOf(r))
		}
	case errors.As(err, &api):
		codes = append(codes, api.ErrorCode())
	}
	return codes
}

func classify(err error) class {
	var (
		condition *ddb.ConditionalCheckFailedException
		canceled  *ddb.TransactionCanceledException
		api       smithy.APIError
		network   net.Error
	)
	switch {
	case errors.Is(err, context.Canceled):
		return classFatal // a deadline is a timeout of the network; whoever waits looks at its own
	case errors.As(err, &condition):
		return classCondition
	case errors.As(err, &canceled):
		return classCanceled
	case tooLarge(err):
		return classPark
	case errors.As(err, &api):
		code := api.ErrorCode()
		switch {
		case asksForRetry(code) || api.ErrorFault() == smithy.FaultServer:
			return classRetry
		case code == "ValidationException" || code == "ItemCollectionSizeLimitExceededException":
			return classPark
		}
		return classFatal
	case errors.As(err, &network):
		return classRetry
	}
	return classFatal
}
