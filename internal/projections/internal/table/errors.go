package table

import (
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/dynamill/dynamill/internal/awscall"
	"github.com/dynamill/dynamill/projections"
)

// SetupError says that the engine cannot start as things are around it.
type SetupError = projections.SetupError

// Refusal is why DynamoDB refuses a request for good; "" if trying again may help.
func Refusal(err error) string {
	var canceled *ddb.TransactionCanceledException
	if errors.As(err, &canceled) {
		for _, r := range canceled.CancellationReasons {
			if reason := RefusedAction(r); reason != "" {
				return reason
			}
		}
		return ""
	}
	if err == nil || awscall.Classify(err) != awscall.Refused {
		return ""
	}
	if api := smithy.APIError(nil); errors.As(err, &api) {
		return api.ErrorCode() + ": " + api.ErrorMessage()
	}
	return err.Error()
}

// IsAboutSize reports whether DynamoDB refuses a write because its item would be larger than 400 KB. The code is that of all invalid
// input, so only the text tells: use it for words alone.
func IsAboutSize(refusal string) bool { return strings.Contains(refusal, "maximum allowed size") }

// LostRace reports whether a transaction was cancelled because other writers changed its items,
// and not because DynamoDB refuses an action for good.
func LostRace(err error) bool {
	var canceled *ddb.TransactionCanceledException
	return errors.As(err, &canceled) && Refusal(err) == ""
}

// RefusedAction is why DynamoDB refuses one action of a transaction for good; "" if it does not.
func RefusedAction(r ddb.CancellationReason) string {
	code := awscall.ReasonCode(r)
	if code == "None" || code == "ConditionalCheckFailed" || awscall.RetryCode(code) {
		return ""
	}
	return code + ": " + aws.ToString(r.Message)
}
