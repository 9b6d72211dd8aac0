package projections

import (
	"context"
	"errors"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
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
func ReadOrigins(ctx context.Context, client InspectClient, stateTable string) (Origins, error) {
	rd := &ruleReader{reader: newReader(client, stateTable)}
	table, err := rd.readTableItem(ctx)
	if missing := new(ddb.ResourceNotFoundException); errors.As(err, &missing) {
		return Origins{}, nil
	}
	return Origins{Registered: table != nil, FollowedWith: textOf(table[registryLeases])}, err
}

// registryLeases is the attribute of the registry that holds Origins.FollowedWith.
const registryLeases = "leases"

// NoteFollowed notes in the registry that processes follow the stream with a
// lease table. That table must exist, so that a crash leaves no note without one.
func (e *Engine) NoteFollowed(ctx context.Context, leaseTable string) error {
	table, err := e.readTableItem(ctx)
	if err != nil || textOf(table[registryLeases]) == leaseTable {
		return err
	}
	c := newExpression()
	set := c.sprintf("SET %n = %v", registryLeases, textValue(leaseTable))
	sameState := c.sprintf("%n = %v", "incarnation", textValue(e.planner.Incarnation))
	_, err = e.tables.update(ctx, "", "noting the lease table in the registry", e.tables.stateUpdate(stateKey{registryPartition, registryTable}, set, sameState, c))
	if err != nil && classify(err) == classCondition {
		return ErrEpochMoved
	}
	return err
}
