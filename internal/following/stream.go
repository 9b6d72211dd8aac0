package following

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/awserror"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/internal/projections"
)

// EnabledStream is the ARN of a table's stream; "" if no stream is enabled.
func EnabledStream(table *types.TableDescription) string {
	if table.StreamSpecification == nil || !aws.ToBool(table.StreamSpecification.StreamEnabled) {
		return ""
	}
	return aws.ToString(table.LatestStreamArn)
}

// EnableStream is the aws command that enables the stream of a place's table.
func EnableStream(p awserror.Place) string {
	return updateTable(p, "StreamEnabled=true,StreamViewType=NEW_AND_OLD_IMAGES")
}

func updateTable(p awserror.Place, specification string) string {
	command := "aws dynamodb update-table --table-name " + printable.Shell(p.Table) + " --stream-specification " + specification
	if p.Region != "" {
		command += " --region " + p.Region
	}
	if p.Endpoint != "" {
		command += " --endpoint-url " + printable.Shell(p.Endpoint)
	}
	return command
}

// Stream returns the ARN of a table's stream, which must be enabled and carry both images.
// Otherwise the error is a *projections.SetupError.
func Stream(table *types.TableDescription, p awserror.Place) (string, error) {
	arn := EnabledStream(table)
	if arn == "" {
		return "", setup("enable it with `"+EnableStream(p)+"`", "table %q in %s has no stream", p.Table, p.Where)
	}
	if view := table.StreamSpecification.StreamViewType; view != types.StreamViewTypeNewAndOldImages {
		return "", setup(fmt.Sprintf("a stream's view type cannot be changed, so disable it with `%s` and enable it again with `%s`",
			updateTable(p, "StreamEnabled=false"), EnableStream(p)),
			"the stream of table %q in %s carries %s, but dynamill needs NEW_AND_OLD_IMAGES", p.Table, p.Where, view)
	}
	return arn, nil
}

func setup(remedy, problem string, args ...any) error {
	return &projections.SetupError{Problem: fmt.Sprintf(problem, args...), Remedy: remedy}
}

// setupTimeout bounds one description of a table.
const setupTimeout = time.Minute

// Describe returns the description of a place's table, which must be there. A table that is
// missing is a *projections.SetupError.
func Describe(ctx context.Context, client Client, p awserror.Place) (*types.TableDescription, error) {
	ctx, cancel := context.WithTimeout(ctx, setupTimeout)
	defer cancel()
	out, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &p.Table})
	switch {
	case errors.As(err, new(*types.ResourceNotFoundException)):
		return nil, setup("check --table and --region", "table %q does not exist in %s", p.Table, p.Where)
	case err != nil:
		return nil, fmt.Errorf("describing table %q: %w", p.Table, err)
	case out.Table == nil:
		return nil, setup("check --endpoint", "%s described table %q with nothing", p.Where, p.Table)
	}
	return out.Table, nil
}

// InUse returns a *projections.SetupError if a table is being created or deleted.
func InUse(table *types.TableDescription, p awserror.Place) error {
	switch status := table.TableStatus; status {
	case types.TableStatusActive, types.TableStatusUpdating, "":
		return nil
	default:
		return setup("wait until it is ACTIVE", "table %q in %s is %s", p.Table, p.Where, status)
	}
}
