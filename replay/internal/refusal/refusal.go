// Package refusal tells refusals of DynamoDB that pass from those that stay.
package refusal

import (
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"
)

var retried = retry.IsErrorRetryables(retry.DefaultRetryables)

// Passes reports whether an error passes by itself: what the AWS SDK sends again, and
// all that is the server's fault.
func Passes(err error) bool {
	var api smithy.APIError
	return retried.IsErrorRetryable(err) == aws.TrueTernary || errors.As(err, &api) && api.ErrorFault() == smithy.FaultServer
}
