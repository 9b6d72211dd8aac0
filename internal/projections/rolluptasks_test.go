package projections

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// TestFailedRollupIsToldBesideHotDisplay has one roll-up fail, and another be put off again whenever it is done. WorkTasks always finds
// more to do, but it must tell of the failure: only its next call tries again.
func TestFailedRollupIsToldBesideHotDisplay(t *testing.T) {
	w := newWorld(t, recentRule())
	w.put(w.keyItem(thePost))
	e := w.seeded()
	read := w.drain(e, 0)
	for _, id := range []string{"a", "b"} {
		w.remark(id, change.Item{"at": s(id)})
	}
	w.drain(e, read)
	putOff := func(key change.Key) {
		g := plan.GroupRef{Binding: e.planner.InForce[0], Group: key.String()}
		c := table.NewExpression()
		update := state.AskRollup(c, g, time.Now())
		if _, err := e.host.Tables.UpdateState(w.ctx, g.ID, "putting off", state.DueRollupKey(g), update, "", c); err != nil {
			t.Error(err)
		}
	}
	cold := change.Key{Partition: "POST#cold", Sort: "METADATA"}
	putOff(cold)
	putOff(thePost)
	hot := 0
	worker := w.engine(&groupReads{Client: w.sim, before: func(group string) error {
		switch {
		case !strings.HasPrefix(group, "sum/"):
		case strings.Contains(group, "POST#cold"):
			return errCrash
		default:
			hot++
			putOff(thePost)
		}
		return nil
	}})
	ctx, stop := context.WithTimeout(w.ctx, 5*time.Second)
	defer stop()
	if _, err := worker.WorkTasks(ctx); !errors.Is(err, errCrash) || hot > 3 || ctx.Err() != nil {
		t.Errorf("after %d other roll-ups it says %v", hot, err)
	}
	if rows := w.under("tasks"); len(rows) != 2 {
		t.Errorf("left are %v, want both roll-ups", rows)
	}
}

// groupReads calls before with the partition keys of each batch of state rows that is read, and fails the read if before fails.
type groupReads struct {
	table.Client
	before func(partitions string) error
}

func (g *groupReads) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput,
	options ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	partitions := ""
	for _, key := range in.RequestItems["app-dynamill"].Keys {
		partitions += table.KeyOf(key).Partition
	}
	if err := g.before(partitions); err != nil {
		return nil, err
	}
	return g.Client.BatchGetItem(ctx, in, options...)
}
