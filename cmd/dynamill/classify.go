package main

import (
	"context"
	"errors"
	"net"
	"slices"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/ssocreds"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/dynamill/dynamill/projections"
	"github.com/dynamill/dynamill/rules"
)

// The codes by which AWS refuses a caller. The message text is never looked at:
// it differs between AWS and the emulators, and changes.
var (
	permissionCodes  = []string{"AccessDeniedException", "AccessDenied", "UnauthorizedOperation", "NotAuthorized", "KMSAccessDeniedException"}
	credentialsCodes = []string{
		"UnrecognizedClientException", "InvalidSignatureException", "InvalidClientTokenId", "SignatureDoesNotMatch",
		"IncompleteSignature", "IncompleteSignatureException", "MissingAuthenticationToken", "MissingAuthenticationTokenException",
		"InvalidAccessKeyId", "OptInRequired",
	}
	expiredCodes = []string{"ExpiredTokenException", "ExpiredToken", "RequestExpired", "TokenRefreshRequired"}
	// codeUnknown is what the SDK says where an answer carries no code at all.
	codeUnknown   = "UnknownError"
	notFoundCodes = []string{"ResourceNotFoundException", "TableNotFoundException"}
)

// classify turns an error from AWS into one sentence with its remedy where its
// cause lies in the surroundings; any other error stays as it is.
func (env *environment) classify(err error) error {
	var (
		known    *failure
		problems *rules.Problems
		changed  *projections.RulesChangedError
		refusal  smithy.APIError
		found    error
	)
	switch {
	case errors.As(err, &known):
		return known // the sentence alone, without what was being done
	case err == nil, errors.As(err, &problems), errors.As(err, &changed):
		return err
	case errors.As(err, &refusal):
		found = env.refused(err, refusal)
	case !errors.Is(err, context.Canceled):
		found = env.unreachable(err)
	}
	if found != nil {
		return found
	}
	return err
}

// refused is the sentence for an answer of AWS that says no; nil for codes that
// have nothing to do with the surroundings.
func (env *environment) refused(err error, refusal smithy.APIError) error {
	code, message := refusal.ErrorCode(), refusal.ErrorMessage()
	switch {
	case slices.Contains(permissionCodes, code):
		return unsuited("no permission for %s, wanted for table %q in %s: allow this action in the IAM policy of the credentials in use (%s: %s)",
			action(err), env.table, env.where(), code, message)
	case slices.Contains(credentialsCodes, code):
		return unsuited("the AWS credentials were refused in %s: check AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and --region (%s: %s)",
			env.where(), code, message)
	case slices.Contains(expiredCodes, code):
		return unsuited("the AWS credentials have expired: renew them (for example with `aws sso login`) and start again (%s: %s)", code, message)
	case slices.Contains(notFoundCodes, code) && !isSetup(err):
		return unsuited("something that dynamill works on has gone away (%s of %s in %s): check the table, its stream and the state table, and start again (%s)",
			action(err), env.table, env.where(), message)
	case code == codeUnknown:
		return unsuited("%s did not answer as DynamoDB does: check --endpoint (%s)", env.where(), message)
	}
	return nil
}

// unreachable is the sentence for a request that never got an answer, or one
// that is not DynamoDB's; nil for anything else.
func (env *environment) unreachable(err error) error {
	var (
		sending  *smithyhttp.RequestSendError
		network  *net.OpError
		lookup   *net.DNSError
		decoding *smithy.DeserializationError
		where    = "DynamoDB in " + env.region
		remedy   = "check the network and --region"
	)
	if env.endpoint != "" {
		where, remedy = env.endpoint, "check --endpoint, and that a server is listening there"
	}
	switch {
	case errors.As(err, &lookup):
		return unsuited("%s cannot be reached: %s (%w)", where, remedy, lookup)
	case errors.As(err, &network):
		return unsuited("%s cannot be reached: %s (%w)", where, remedy, network)
	case errors.As(err, &sending):
		return unsuited("%s cannot be reached: %s (%w)", where, remedy, sending)
	case errors.As(err, &decoding):
		return unsuited("%s did not answer as DynamoDB does: %s (%w)", where, remedy, decoding)
	}
	return nil
}

func isSetup(err error) bool {
	var setup *projections.SetupError
	return errors.As(err, &setup)
}

// action names the IAM action of the failed call, such as dynamodb:GetRecords.
func action(err error) string {
	var operation *smithy.OperationError
	if !errors.As(err, &operation) {
		return "DynamoDB"
	}
	if operation.OperationName == "TransactWriteItems" {
		// IAM knows no action of this name: each member needs its own, and AWS's message names the one that is missing.
		return "dynamodb:PutItem, UpdateItem, DeleteItem or ConditionCheckItem"
	}
	return "dynamodb:" + operation.OperationName
}

// configurationFailure is the sentence for AWS configuration files that cannot be used.
func (env *environment) configurationFailure(err error) error {
	var missing config.SharedConfigProfileNotExistError
	if errors.As(err, &missing) {
		return unsuited("the AWS profile %q does not exist: check AWS_PROFILE and ~/.aws/config", missing.Profile)
	}
	return unsuited("the AWS configuration cannot be used: check ~/.aws/config and the AWS_ variables (%w)", err)
}

// credentialsFailure is the sentence for credentials that cannot be had.
func (env *environment) credentialsFailure(err error) error {
	var session *ssocreds.InvalidTokenError
	var refusal smithy.APIError
	switch {
	case errors.As(err, &session):
		return unsuited("the AWS SSO session has expired: run `aws sso login` and start again (%w)", err)
	case errors.As(err, &refusal) && slices.Contains(expiredCodes, refusal.ErrorCode()):
		return unsuited("the AWS credentials have expired: renew them (for example with `aws sso login`) and start again (%w)", err)
	}
	return unsuited("no AWS credentials were found: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY " +
		"(for DynamoDB Local, --endpoint http://localhost:8000 needs none)")
}
