package followed

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/smithy-go"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/environment"
	"github.com/dynamill/dynamill/internal/awserror"
	"github.com/dynamill/dynamill/internal/health"
)

const (
	functionsTime = 5 * time.Second
	mappingsMax   = 100 // of one stream, which Lambda lets two functions read at once
)

// functionsOf lists the Lambda functions that are mapped to a stream. If Lambda refuses to list them, the
// result gives the reason.
func functionsOf(ctx context.Context, env *environment.Environment, streamARN string) (found health.Functions) {
	if streamARN == "" || !asksLambda(env) {
		return found
	}
	ctx, cancel := context.WithTimeout(ctx, functionsTime)
	defer cancel()
	pages := lambda.NewListEventSourceMappingsPaginator(env.Functions, &lambda.ListEventSourceMappingsInput{
		EventSourceArn: &streamARN, MaxItems: aws.Int32(mappingsMax),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return health.Functions{Unknown: unlistedReason(err)}
		}
		for _, m := range page.EventSourceMappings {
			found.List = append(found.List, health.Function{
				Name: functionName(aws.ToString(m.FunctionArn)), State: aws.ToString(m.State),
				LastResult: aws.ToString(m.LastProcessingResult),
			})
		}
	}
	return found
}

// functionName is the name in a function's ARN, with its alias or version.
func functionName(arn string) string {
	parts := strings.SplitN(arn, ":", 7)
	return parts[len(parts)-1]
}

func unlistedReason(err error) string {
	var refusal smithy.APIError
	switch {
	case refusedAction(err) != "":
		return refusedAction(err)
	case errors.As(err, &refusal):
		return "Lambda answered " + refusal.ErrorCode()
	}
	return "Lambda did not answer"
}

// refusedAction is a phrase for an action that the credentials in use may not do; "" for any other error.
func refusedAction(err error) string {
	if told := awserror.Explain(err, awserror.Place{}); told == nil || told.Kind != awserror.Permission {
		return ""
	}
	var operation *smithy.OperationError
	if !errors.As(err, &operation) {
		return "no permission"
	}
	service := "dynamodb"
	if operation.ServiceID == lambda.ServiceID {
		service = "lambda"
	}
	return "no permission for " + service + ":" + operation.OperationName
}
