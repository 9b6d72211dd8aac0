package projections

import (
	"context"
	"errors"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/projections/internal/registry"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// Origins is what a state table tells of how it came to be used.
type Origins struct {
	Registered bool // the registry is there
	// FollowedWith is the lease table of the processes that followed the stream;
	// "" if none ever did, as where a function follows it.
	FollowedWith string
}

// ReadOrigins reads a state table and writes nothing. A table that is missing or
// empty has no Origins.
func ReadOrigins(ctx context.Context, client table.InspectClient, stateTable string) (Origins, error) {
	own, err := registry.ReadTable(ctx, table.NewReader(client, stateTable))
	if missing := new(ddb.ResourceNotFoundException); errors.As(err, &missing) {
		return Origins{}, nil
	}
	if own == nil {
		return Origins{}, err
	}
	return Origins{Registered: true, FollowedWith: own.Leases}, err
}

// NoteFollowed notes in the registry that processes follow the stream with a
// lease table. That table must exist, so that a crash leaves no note without one.
func (e *Engine) NoteFollowed(ctx context.Context, leaseTable string) error {
	own, err := registry.ReadTable(ctx, e.tables.Reader)
	if err != nil || own != nil && own.Leases == leaseTable {
		return err
	}
	c := table.NewExpression()
	set := c.Format("SET %n = %v", state.LeasesAttribute, table.Text(leaseTable))
	sameState := c.Format("%n = %v", "incarnation", table.Text(e.planner.Incarnation))
	noted, err := e.tables.UpdateState(ctx, "", "noting the lease table in the registry", state.TableKey(), set, sameState, c)
	if err == nil && !noted {
		return registry.ErrEpochMoved
	}
	return err
}
