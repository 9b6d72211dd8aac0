package main

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/dynamill/dynamill/projections"
)

// lostTable says which of dynamill's own tables was deleted.
type lostTable uint8

const (
	lostNone   lostTable = iota
	lostState            // a lease shows that a process followed this stream, and the state table holds no registry
	lostLeases           // the registry shows that a process followed with leases, and there are none
)

// traces are what the lease table and the state table tell of each other.
type traces struct {
	leaseRows    int  // of any stream
	streamLeases int  // of the table's stream
	registered   bool // the state table holds a registry
	followed     bool // the registry says that a process followed the stream with this lease table
}

// lost decides which table was deleted. If only functions or replays used the state
// table, the registry names no lease table, and a missing lease table means nothing.
func (t traces) lost() lostTable {
	switch {
	case !t.registered && t.streamLeases > 0:
		return lostState
	case t.registered && t.followed && t.leaseRows == 0:
		return lostLeases
	}
	return lostNone
}

// readTraces reads the leases before the state. A process makes its state table first,
// so a process that starts meanwhile does not look like a loss.
func (env *environment) readTraces(ctx context.Context, streamARN string) (t traces, err error) {
	leases, err := env.readLeases(ctx)
	if err != nil {
		return t, env.classify(fmt.Errorf("reading the checkpoints in %s: %w", env.leaseTable, err))
	}
	t.leaseRows = len(leases.rows)
	for _, l := range leases.rows {
		if l.Stream == streamARN && streamARN != "" {
			t.streamLeases++
		}
	}
	origins, err := projections.ReadOrigins(ctx, env.tables, env.stateTable)
	if err != nil {
		return t, env.classify(fmt.Errorf("reading the state table %s: %w", env.stateTable, err))
	}
	t.registered, t.followed = origins.Registered, origins.FollowedWith == env.leaseTable
	return t, nil
}

// lostText names the deleted table, the consequence and the remedy.
func (env *environment) lostText(lost lostTable) string {
	switch lost {
	case lostState:
		return fmt.Sprintf("the state table %s was deleted: the lease table %s holds checkpoints of this stream, and what was derived is known nowhere. "+
			"Restore %s from a backup, or start over: delete %s too, and start `dynamill run`, which then seeds every rule anew (docs/state-table.md, \"Starting over\")",
			env.stateTable, env.leaseTable, env.stateTable, env.leaseTable)
	case lostLeases:
		return fmt.Sprintf("the lease table %s was deleted: `dynamill run` makes it anew and reads the stream's last 24 hours again, which changes nothing twice. "+
			"Records that are older and were not applied are lost: if `run` was more than 24 hours behind, run `dynamill replay --restart` when it has caught up "+
			"(docs/replay.md, \"After an outage\")", env.leaseTable)
	case lostNone:
	}
	return ""
}

// tellLostState turns the error of a command that found no state into that of a deleted state
// table, if it was deleted; any other error stays as it is.
func (env *environment) tellLostState(ctx context.Context, err error) error {
	if !isSetup(err) {
		return err
	}
	table, unknown := env.describe(ctx)
	if unknown != nil {
		return err
	}
	if t, unknown := env.readTraces(ctx, aws.ToString(table.LatestStreamArn)); unknown == nil && t.lost() == lostState {
		return unsuited("%s", env.lostText(lostState))
	}
	return err
}

// refuseLostState ends a command that would make a deleted state table anew, and
// so seed every rule again unasked.
func (env *environment) refuseLostState(ctx context.Context, streamARN string) (lostTable, error) {
	t, err := env.readTraces(ctx, streamARN)
	if err != nil {
		return lostNone, err
	}
	if t.lost() == lostState {
		return lostState, unsuited("%s", env.lostText(lostState))
	}
	return t.lost(), nil
}
