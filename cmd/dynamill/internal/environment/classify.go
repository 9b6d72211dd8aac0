package environment

import (
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/ssocreds"
	"github.com/aws/smithy-go"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/internal/awserror"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/replay/objects"
	"github.com/dynamill/dynamill/internal/rules"
)

// Place is where the calls of this environment go.
func (env *Environment) Place() awserror.Place {
	return awserror.Place{Table: env.Table, Where: env.Where(), Region: env.Region, Endpoint: env.Endpoint}
}

// Classify turns an error from AWS into plain words, with the exit code of its cause; any other error stays as it is.
func (env *Environment) Classify(err error) error {
	if known, ok := errors.AsType[*ending.Failure](err); ok {
		return known // the sentence alone, without what was being done
	}
	switch missing, ok := errors.AsType[*missingError](err); {
	case err == nil, errors.As(err, new(*rules.Problems)), errors.As(err, new(*projections.RulesChangedError)):
		return err
	case ok:
		return credentialsFailure(missing)
	case errors.As(err, new(*objects.PermissionError)):
		return ending.Unsuited("%w", err) // it names the remedy itself
	}
	told := awserror.Explain(err, env.Place())
	switch {
	case told == nil, told.Kind == awserror.Missing && IsSetup(err):
		return err
	case told.Kind.Environment():
		return ending.Unsuited("%w", told)
	}
	return told
}

// IsSetup reports whether a table cannot be used as it is.
func IsSetup(err error) bool { return errors.As(err, new(*projections.SetupError)) }

func configurationFailure(err error) error {
	if missing, ok := errors.AsType[config.SharedConfigProfileNotExistError](err); ok {
		return ending.Unsuited("the AWS profile %q does not exist: check AWS_PROFILE and ~/.aws/config", missing.Profile)
	}
	return ending.Unsuited("the AWS configuration cannot be used: check ~/.aws/config and the AWS_ variables (%w)", err)
}

// refusedAs reports whether AWS refused a call with one of some codes.
func refusedAs(err error, codes []string) bool {
	refusal, ok := errors.AsType[smithy.APIError](err)
	return ok && slices.Contains(codes, refusal.ErrorCode())
}

func credentialsFailure(err error) error {
	switch {
	case errors.As(err, new(*ssocreds.InvalidTokenError)):
		return ending.Unsuited("the AWS SSO session has expired: run `aws sso login` and start again (%w)", err)
	case refusedAs(err, awserror.ExpiredCodes):
		return ending.Unsuited("the AWS credentials have expired: renew them (for example with `aws sso login`) and start again (%w)", err)
	case refusedAs(err, awserror.PermissionCodes):
		return ending.Unsuited("the role of the AWS profile cannot be assumed: check role_arn in ~/.aws/config, and the role's trust policy (%w)",
			err)
	}
	return ending.Unsuited("no AWS credentials were found: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; "+
		"for DynamoDB Local, --endpoint http://localhost:8000 needs none (%w)", err)
}
