package environment

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/credentials/ssocreds"
	"github.com/aws/smithy-go"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/replay/objects"
)

func TestErrorsAreClassifiedByTypeWhereverTheyAreWrapped(t *testing.T) {
	env := &Environment{Table: "app", Region: "eu-west-1"}
	api := func(code string) error {
		return &smithy.OperationError{ServiceID: "DynamoDB Streams", OperationName: "GetRecords",
			Err: &smithy.GenericAPIError{Code: code, Message: "why"}}
	}
	for name, c := range map[string]struct {
		err  error
		code int
		want string
	}{
		"permission on a stream": {api("AccessDeniedException"), ending.ExitEnvironment, "dynamodb:GetRecords"},
		"expired":                {api("ExpiredTokenException"), ending.ExitEnvironment, "expired"},
		"gone":                   {api("ResourceNotFoundException"), ending.ExitEnvironment, "gone away"},
		"a bug":                  {api("ValidationException"), ending.ExitFailed, "why"},
		"AWS's own trouble":      {api("InternalServerError"), ending.ExitFailed, "why"},
		"no such host":           {&net.DNSError{Err: "no such host", Name: "x"}, ending.ExitEnvironment, "cannot be reached"},
		"a stop":                 {context.Canceled, ending.ExitFailed, "canceled"},
		"setup of the engine":    {&projections.SetupError{Problem: "it is so", Remedy: "do this"}, ending.ExitEnvironment, "it is so: do this"},
		"permission in setup": {&projections.SetupError{Problem: "p", Remedy: "r", Err: api("AccessDeniedException")},
			ending.ExitEnvironment, "dynamodb:GetRecords"},
		"changed rules": {&projections.RulesChangedError{StateTable: "app-dynamill", Changed: []string{"r"}}, ending.ExitInvalid,
			"differs from the rules in force"},
		"no answer in time": {&smithy.OperationError{ServiceID: "DynamoDB", OperationName: "Scan", Err: context.DeadlineExceeded},
			ending.ExitEnvironment, "did not answer dynamodb:Scan"},
		"another deadline": {context.DeadlineExceeded, ending.ExitFailed, "doing this: context deadline exceeded"},
		"credentials gone": {&missingError{errors.New("why")}, ending.ExitEnvironment, "no AWS credentials were found"},
		"a role refused":   {&missingError{api("AccessDenied")}, ending.ExitEnvironment, "cannot be assumed"},
		"no object": {&objects.PermissionError{Place: "s3://b/k", Permissions: "s3:GetObject on it", Err: api("AccessDenied")},
			ending.ExitEnvironment, "s3://b/k: the credentials lack s3:GetObject on it: allow"},
		"throttled": {api("ThrottlingException"), ending.ExitFailed, "AWS throttles"},
		"another":   {errors.New("whatever AccessDeniedException says"), ending.ExitFailed, "whatever"},
	} {
		t.Run(name, func(t *testing.T) {
			got := env.Classify(fmt.Errorf("doing this: %w", c.err))
			if ending.ExitCode(got) != c.code || !strings.Contains(got.Error(), c.want) {
				t.Errorf("exit code %d: %v; want %d and %q", ending.ExitCode(got), got, c.code, c.want)
			}
		})
	}
	if got := credentialsFailure(fmt.Errorf("x: %w", &ssocreds.InvalidTokenError{})); !strings.Contains(got.Error(), "aws sso login") {
		t.Errorf("an expired SSO session is told as %v", got)
	}
}

func TestARefusalThatLastsIsOfTheEnvironment(t *testing.T) {
	env := &Environment{Table: "app", Region: "eu-west-1"}
	for _, code := range []string{"AccessDeniedException", "ExpiredTokenException", "ResourceNotFoundException"} {
		err := env.Classify(fmt.Errorf("following: %w", &smithy.GenericAPIError{Code: code}))
		if ending.ExitCode(err) != ending.ExitEnvironment {
			t.Errorf("%s: exit code %d", code, ending.ExitCode(err))
		}
	}
}
