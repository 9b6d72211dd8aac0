// Package following is what the library and the commands ask of a table's stream and of dynamill's
// own two tables before and after anything follows: whether one of them was deleted, and what to
// do then. It imports projections, internal/stream/leases, internal/awserror and internal/printable.
package following

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/awserror"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/projections/inspect"
	"github.com/dynamill/dynamill/internal/stream/leases"
)

// The suffixes of the default names: the state table's is the table's and StateSuffix, the lease
// table's is the state table's and LeaseSuffix.
const (
	StateSuffix = "-dynamill"
	LeaseSuffix = "-leases"
)

// Tables are dynamill's own tables beside a table.
type Tables struct{ State, Lease string }

// Lost says which of dynamill's own tables was deleted.
type Lost uint8

// What may be lost.
const (
	LostNone   Lost = iota
	LostState       // a lease shows that a process followed this stream, and the state table holds no registry
	LostLeases      // the registry shows that a process followed with leases, and there are none
)

// Traces are what the lease table and the state table tell of each other.
type Traces struct {
	Leases     []leases.Lease // of any stream
	Registered bool           // the state table holds a registry
	Followed   bool           // the registry says that a process followed the stream with this lease table
	// BesideFunction says that it left some rules to a Lambda function: the leases do not tell what is applied for those.
	BesideFunction bool
}

// Lost decides which table was deleted, where the table has a stream. If only functions or replays used the state
// table, the registry names no lease table, and a missing lease table means nothing.
func (t Traces) Lost(streamARN string) Lost {
	ofStream := func(l leases.Lease) bool { return l.Stream == streamARN && streamARN != "" }
	switch {
	case !t.Registered && slices.ContainsFunc(t.Leases, ofStream):
		return LostState
	case t.Registered && t.Followed && len(t.Leases) == 0:
		return LostLeases
	}
	return LostNone
}

// Traces reads the leases before the state: a process makes its state table first, so a process
// that starts meanwhile does not look like a loss.
func (t Tables) Traces(ctx context.Context, client projections.Client) (Traces, error) {
	var found Traces
	rows, _, err := leases.NewTable(client, t.Lease).Read(ctx)
	if err != nil {
		return found, fmt.Errorf("reading the checkpoints in %s: %w", t.Lease, err)
	}
	origins, err := inspect.ReadOrigins(ctx, client, t.State)
	if err != nil {
		return found, fmt.Errorf("reading the state table %s: %w", t.State, err)
	}
	found.Leases, found.Registered, found.Followed = rows, origins.Registered, origins.FollowedWith == t.Lease
	found.BesideFunction = found.Followed && origins.BesideFunction
	return found, nil
}

// LostText names the deleted table and the consequence, and then the remedy.
func (t Tables) LostText(lost Lost) (problem, remedy string) {
	switch lost {
	case LostState:
		return fmt.Sprintf("the state table %s was deleted: the lease table %s holds checkpoints of this stream, and what was derived is "+
				"known nowhere", t.State, t.Lease),
			fmt.Sprintf("start over: delete %s too, and start `dynamill run`, which then seeds every rule anew (docs/state-table.md, "+
				"\"Starting over\"); or restore %s from a backup (docs/operations.md, \"A restored state table\")", t.Lease, t.State)
	case LostLeases:
		return fmt.Sprintf("the lease table %s was deleted: `dynamill run` makes it anew and reads the stream's last 24 hours again, which "+
				"changes nothing twice", t.Lease),
			"records that are older and were not applied are lost: if `run` was more than 24 hours behind, run `dynamill replay --restart` when " +
				"it has caught up " +
				"(docs/replay.md, \"After an outage\")"
	case LostNone:
	}
	return "", ""
}

// ReplayMissed is the remedy where the stream alone cannot make things right any
// more. The state table stays: it tells what is in force of items that vanished.
func (t Tables) ReplayMissed() string {
	return fmt.Sprintf("stop every `dynamill run` of this table, delete the table %s (checkpoints that lead nowhere), start `dynamill run` "+
		"again, "+
		"and run `dynamill replay --restart` when it has caught up (docs/replay.md, \"After an outage\")", t.Lease)
}

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

const setupTimeout = time.Minute

// Describe returns the description of a place's table, which must be there. A table that is
// missing is a *projections.SetupError.
func Describe(ctx context.Context, client projections.Client, p awserror.Place) (*types.TableDescription, error) {
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
