package dynamosim

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/dynamill/dynamill/internal/sim/dynamosim/values"
)

// invalid returns a ValidationException.
func invalid(format string, args ...any) error { return values.Invalid(format, args...) }

func noTable(name string) error {
	return &types.ResourceNotFoundException{Message: aws.String("Requested resource not found: Table: " + name + " not found")}
}

func noStream(message string) error {
	return &streamtypes.ResourceNotFoundException{Message: aws.String("Requested resource not found: " + message)}
}

// refuse reports the first of the named parameters that is given: AWS has them, the simulator does not.
func refuse(given map[string]bool) error {
	for _, name := range []string{
		"Expected", "AttributeUpdates", "ConditionalOperator", "KeyConditions", "QueryFilter", "ScanFilter", "AttributesToGet", "IndexName",
		"AttributeDefinitions", "GlobalSecondaryIndexUpdates", "ReplicaUpdates",
	} {
		if given[name] {
			return invalid("the simulated DynamoDB does not support %s", name)
		}
	}
	return nil
}
