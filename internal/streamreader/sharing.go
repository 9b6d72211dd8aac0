package streamreader

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dynamill/dynamill/internal/stream/leases"
	"github.com/dynamill/dynamill/internal/stream/streamapi"
)

// loadMax is how long the rows may take to be read at the start, when the table
// may have to be made first.
const loadMax = 2 * time.Minute

// share scans the leases if it is time. It returns only errors that no retry cures.
func (f *follower) share(ctx, work context.Context) error {
	heard := f.fleet.HeardAt()
	due, err := f.fleet.ScanDue(ctx)
	if err == nil && due {
		err = f.loadRows(ctx)
	}
	if err == nil {
		err = f.fleet.Over()
	}
	if err == nil && due {
		err = f.fleet.Elect(ctx, !f.initialListing)
	}
	switch {
	case err == nil && due:
		f.fleet.ScanSucceeded()
		f.balanceAndPublish(ctx, work)
	case err == nil && f.fleet.HeardAt().After(heard): // a worker without shards makes no other progress
		f.publish()
	case err == nil, ctx.Err() != nil:
	case streamapi.Classify(err) != streamapi.VerdictRetry, f.fleet.ScannedAt().IsZero() && time.Since(f.began) > loadMax:
		return err
	default:
		f.r.cfg.Logger.Warn("looking at the leases failed, will retry", "wait", f.fleet.PostponeScan(), "error", err)
	}
	return nil
}

func (f *follower) loadRows(ctx context.Context) error {
	inTime, cancel := context.WithTimeout(ctx, f.r.cfg.LeaseTerm) // a request that hangs must not keep this worker from taking what is free
	defer cancel()
	first := f.fleet.ScannedAt().IsZero()
	allMade := f.fleet.Own().Checkpoint == leases.Latest // as of before the scan: a scan is not a snapshot
	done := f.r.records.Load()
	rows, err := f.r.cfg.Checkpoints.Load(inTime)
	if err != nil {
		return fmt.Errorf("loading leases: %w", err)
	}
	f.allMade = allMade
	f.takeOverRows(rows, done)
	if first && f.initialListing {
		f.r.cfg.Logger.Info("starting with the oldest records that the stream holds", "stream", f.r.cfg.StreamARN)
	}
	return nil
}

// balance claims what this worker should read, and releases what others should.
func (f *follower) balance(ctx, work context.Context) {
	busy := make(map[string]bool, len(f.running))
	for id := range f.running {
		busy[id] = true
	}
	plan, firstPlan := f.fleet.Divide(busy)
	if f.decoder.Label == "" || f.fleet.Over() != nil {
		return // the lister has not written yet what the records look like; or this worker is to end
	}
	claim := func(ctx context.Context, l leases.Lease) (leases.Lease, error) {
		return f.r.cfg.Checkpoints.Claim(ctx, l, f.r.cfg.worker())
	}
	for i, got := range f.each(ctx, plan.Take, claim) {
		f.takeOver(ctx, work, plan.Take[i], got)
	}
	f.evict(ctx)
	if !firstPlan {
		return // rows of a while ago say too little of how much each worker has
	}
	for _, l := range plan.Release {
		if s := f.running[l.Shard]; s != nil {
			s.Release()
		}
	}
	f.fleet.Seek(ctx, plan.Seek)
}

// evict releases the leases of silent owners for other workers, and deletes the rows of
// silent seekers. Only the lister does so.
func (f *follower) evict(ctx context.Context) {
	if !f.fleet.Lists() {
		return
	}
	var silent []leases.Lease
	for _, id := range slices.Sorted(maps.Keys(f.fleet.Shards)) {
		if l := f.fleet.Shards[id]; !l.Finished() && l.Owner != f.r.cfg.WorkerID && f.fleet.Expired(l) && len(silent) < evictMost {
			silent = append(silent, l)
		}
	}
	for _, got := range f.each(ctx, silent, f.r.cfg.Checkpoints.Evict) {
		if got.err == nil || errors.Is(got.err, ErrLeaseLost) && got.row.Shard != "" {
			f.fleet.Note(got.row)
			f.fleet.NoteNews()
		}
	}
	f.deleteRows(ctx, f.fleet.SilentSeekers())
}

// evictMost bounds the leases that one scan evicts.
const evictMost = 1024

// claimed is what came of one call on a row.
type claimed struct {
	row   leases.Lease
	began time.Time
	err   error
}

// each makes one call for each lease, several at a time, and returns what came of those made before ctx ended. It breaks
// none off: a lease that was claimed unnoticed has no reader for a term.
func (f *follower) each(ctx context.Context, rows []leases.Lease, do func(context.Context, leases.Lease) (leases.Lease, error)) []claimed {
	got := make([]claimed, len(rows))
	base, cancel := f.r.cfg.worker().InTime(context.WithoutCancel(ctx))
	defer cancel()
	var group errgroup.Group
	group.SetLimit(leases.CallsMax)
	for i, l := range rows {
		group.Go(func() error {
			got[i] = claimed{row: l, began: time.Now(), err: context.Cause(ctx)}
			if got[i].err == nil {
				got[i].row, got[i].err = do(base, l)
			}
			return nil
		})
	}
	_ = group.Wait() // the errors are in got
	return got
}

func (f *follower) takeOver(ctx, work context.Context, before leases.Lease, got claimed) {
	switch {
	case errors.Is(got.err, ErrLeaseLost):
		if got.row.Shard == "" { // deleted meanwhile
			delete(f.fleet.Shards, before.Shard)
			return
		}
		f.fleet.Note(got.row) // another worker was faster
		return
	case got.err != nil:
		if ctx.Err() == nil {
			f.r.cfg.Logger.Warn("claiming a lease failed, will retry", "shard", before.Shard, "error", got.err)
		}
		return
	}
	f.fleet.Note(got.row)
	f.fleet.Plan.Vacant--
	if got.row.Finished() || f.running[got.row.Shard] != nil {
		return
	}
	info := streamapi.Shard{ID: got.row.Shard, Parent: got.row.Parent, Start: got.row.Start, Closed: len(f.children[got.row.Shard]) > 0}
	f.start(ctx, work, info, f.fleet.Hold(got.row, got.began))
}
