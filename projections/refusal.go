package projections

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/awscall"
	"github.com/dynamill/dynamill/projections/internal/plan"
	"github.com/dynamill/dynamill/rules"
)

// DynamoDB refuses some writes for good: an item that would grow over 400 KB, a
// collection over 10 GB, a number that does not fit. Such a write parks its (item,
// rule); the neighbours and the shard go on (promise 7). Every part of a plan comes
// by here: ledger.go judges ledger transactions, parkRefused all other writes.

// refusal is why DynamoDB refuses a request for good; "" if trying again may help.
func refusal(err error) string {
	var canceled *ddb.TransactionCanceledException
	if errors.As(err, &canceled) {
		for _, r := range canceled.CancellationReasons {
			if reason := refusedAction(r); reason != "" {
				return reason
			}
		}
		return ""
	}
	if err == nil || classify(err) != classPark {
		return ""
	}
	if api := smithy.APIError(nil); errors.As(err, &api) {
		return api.ErrorCode() + ": " + api.ErrorMessage()
	}
	return err.Error()
}

// refusedAction is why DynamoDB refuses one action of a transaction for good; "" if it does not.
func refusedAction(r ddb.CancellationReason) string {
	code := awscall.ReasonCode(r)
	if code == "None" || code == "ConditionalCheckFailed" || awscall.RetryCode(code) {
		return ""
	}
	return code + ": " + aws.ToString(r.Message)
}

func writeRejected(reason string) *rules.ItemError {
	return &rules.ItemError{Code: "write.rejected", Reason: "DynamoDB refuses the write: " + reason}
}

// parkRefused parks the (item, rule) if DynamoDB refuses its write for good, and returns
// every other error.
func (e *Engine) parkRefused(ctx context.Context, b *plan.Binding, item change.Key, err error) error {
	if reason := refusal(err); reason != "" {
		return e.park(ctx, b, item, writeRejected(reason))
	}
	return err
}

// ended reports the outcome of a part of the plan for the first record that asked for
// it. A refused write counts as done.
func (w *work) ended(ctx context.Context, first int, b *plan.Binding, item change.Key, err error) {
	w.failed(first, w.parkRefused(ctx, b, item, err))
}
