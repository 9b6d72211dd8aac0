package adversary

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/projections/audits"
	"github.com/dynamill/dynamill/internal/replay/verify"
	"github.com/dynamill/dynamill/internal/replay/verify/pending"
	"github.com/dynamill/dynamill/internal/streamreader"
	"github.com/dynamill/dynamill/internal/tablescan"
)

const (
	verifyMemory = 1 << 20
	// settle and wait of a verification, beside which a quantum is short.
	settle, wait = time.Minute, 10 * time.Minute
)

// Verified is what a verification has found.
type Verified struct {
	Found   []verify.Result
	Summary *verify.Summary // nil if it came to no end

	Miscounted []Miscounted // of rules that count by stream position
}

// verifying is a verification under way.
type verifying struct {
	Verified
	excused bool // something befell meanwhile that no record tells of
	repairs bool
}

// StartVerify starts a process that compares what is derived with what should be,
// while everything goes on.
func (c *Crew) StartVerify() {
	c.startVerify(&verifying{excused: c.unheard()})
}

func (c *Crew) startVerify(v *verifying) *Worker {
	c.Counts[Verifying]++
	world := c.World
	w := c.hire(func(ctx context.Context, w *Worker) (err error) {
		if v.Summary, err = w.verifies(ctx, world, v); err != nil {
			return err
		}
		return w.verifiesCounts(ctx, world, v)
	})
	w.verify = v
	return w
}

// Verify verifies to the end, after all faults, and may repair what it finds.
func (c *Crew) Verify(repairs bool) (Verified, error) {
	v := &verifying{repairs: repairs}
	w := c.startVerify(v)
	err := c.untilOver()
	return v.Verified, errors.Join(err, w.err)
}

// unheard reports whether there is work that no record in the stream tells of:
// batches that were given up.
func (c *Crew) unheard() bool { return len(c.late)+len(c.handings) > 0 }

// ExcuseVerify says that something happens of which the stream does not tell, or
// under which a verification has no meaning.
func (c *Crew) ExcuseVerify() {
	for _, w := range c.workers {
		if w.verify != nil {
			w.verify.excused = true
		}
	}
}

// reapVerify takes note that a worker has ended, and what it found, if it verified.
func (c *Crew) reapVerify(w *Worker) {
	v := w.verify
	if v == nil || v.repairs || v.excused || c.unheard() {
		return
	}
	c.Found, c.Counted = append(c.Found, v.Found...), append(c.Counted, v.Miscounted...)
}

// verifies verifies as `dynamill verify` does.
func (w *Worker) verifies(ctx context.Context, world World, v *verifying) (*verify.Summary, error) {
	set, err := w.sets.load(world.RuleFile)
	if err != nil {
		return nil, err
	}
	audit, err := audits.Open(ctx, audits.Config{Client: w.client, Table: world.Table, StateTable: world.StateTable,
		Rules: set})
	if refused := new(projections.SetupError); errors.As(err, &refused) {
		return nil, nil // there is nothing to verify yet
	}
	if err != nil {
		return nil, err
	}
	cfg := verify.Config{
		Auditor: audit, Logger: slog.New(slog.DiscardHandler), MemoryBytes: verifyMemory, Settle: settle, Wait: wait,
		Items: &tablescan.Table{Client: w.client, TableName: world.Table, Segments: 2},
		Rows:  &tablescan.Table{Client: w.client, TableName: world.StateTable, Segments: 2},
		Found: func(r verify.Result) error {
			v.Found = append(v.Found, r)
			return nil
		},
	}
	if world.StreamARN != "" {
		cfg.Pending = &pending.Stream{
			Client: w.client, ARN: world.StreamARN, PartitionKey: set.Table.PartitionKey, SortKey: set.Table.SortKey,
			Checkpoints: func(ctx context.Context) (map[string]verify.Checkpoint, error) { return w.checkpoints(ctx, world) },
		}
	}
	if v.repairs {
		engine, err := projections.OpenAttached(ctx, w.config(world, set))
		if err != nil {
			return nil, err
		}
		cfg.Mender = mender{audit, engine}
	}
	return verify.Run(ctx, cfg)
}

// checkpoints are how far the shards are applied.
func (w *Worker) checkpoints(ctx context.Context, world World) (map[string]verify.Checkpoint, error) {
	rows, err := streamreader.NewLeaseTable(w.client, world.LeaseTable).Load(ctx)
	if missing := new(ddb.ResourceNotFoundException); errors.As(err, &missing) {
		return nil, nil
	}
	return pending.CheckpointsOf(rows, world.StreamARN), err
}

// mender mends with an engine what rederiving can mend, and with the audit the rest.
type mender struct {
	*audits.Audit
	*projections.Engine
}

// Drift is what was found but for what a sleeper may leave: a reference that
// nothing asks for does no harm, and goes with the parent's next fan-out. What is only listed is no drift.
func Drift(found []verify.Result) []verify.Result {
	return slices.DeleteFunc(slices.Clone(found), func(r verify.Result) bool {
		return r.Status == verify.Listed || r.Kind == drift.Reference && r.What == drift.Orphaned
	})
}
