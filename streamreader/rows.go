package streamreader

import (
	"context"
	"fmt"

	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"golang.org/x/sync/errgroup"

	"github.com/dynamill/dynamill/streamreader/internal/leases"
)

func (f *follower) load(ctx context.Context) error {
	rows, err := f.r.cfg.Checkpoints.Load(ctx)
	if err != nil {
		return fmt.Errorf("loading checkpoints: %w", err)
	}
	former := ""
	for _, l := range rows {
		if l.Stream != f.r.cfg.StreamARN && l.Stream > former {
			former = l.Stream
		}
	}
	f.see(rows)
	if f.fresh {
		f.r.cfg.Logger.Info("starting with the oldest records that the stream holds", "stream", f.r.cfg.StreamARN)
		if former != "" {
			f.r.cfg.Logger.Warn("the table had another stream before: changes between the two were not seen",
				"stream", f.r.cfg.StreamARN, "former", former)
		}
	}
	return nil
}

// see takes over the rows as they were just read.
func (f *follower) see(rows []Lease) {
	var own *Lease
	seen := make(map[string]Lease, len(rows))
	for _, l := range rows {
		switch {
		case l.Stream != f.r.cfg.StreamARN:
		case l.OfStream():
			own = &l
		default:
			seen[l.Shard] = l
		}
	}
	f.fresh, f.own = !hasProgress(seen), Lease{}
	if own != nil {
		f.fresh, f.own = own.Checkpoint == TrimHorizon, *own
	}
	for id := range f.running {
		if l, ok := f.leases[id]; ok && f.fleet == nil {
			seen[id] = l
		}
	}
	if f.fleet != nil {
		f.fleet.see(f.leases, seen, own)
		if own != nil && own.Label != "" {
			f.decoder = decoder{label: own.Label, partition: own.PartitionKey, sortName: own.SortKey}
		}
	}
	before := f.leases
	f.leases, f.children = seen, childrenIn(seen)
	for id, l := range seen {
		if was, known := before[id]; known && l.Finished() && !was.Finished() && len(f.children[id]) == 0 {
			f.listSoon()
		}
	}
	for id, s := range f.running {
		if f.fleet == nil {
			break
		}
		f.fleet.silence.heard(s.snapshot().answered)
		if len(f.children[id]) > 0 {
			s.observe(shardInfo{closed: true}, f.children[id], streams.StreamStatusEnabled)
		}
	}
}

// endFirstList notes, for who reads alone, that a first list is complete which
// a worker of a fleet had begun: from now on a shard whose parent nobody knows
// is a loss.
func (f *follower) endFirstList(ctx context.Context) error {
	if f.own.Shard == "" || f.own.Checkpoint != TrimHorizon {
		return nil
	}
	row, err := f.r.cfg.Checkpoints.Claim(ctx, f.own, f.r.cfg.worker())
	if err != nil {
		return err
	}
	row.Checkpoint, row.Label, row.PartitionKey, row.SortKey = Latest, f.decoder.label, f.decoder.partition, f.decoder.sortName
	f.own, err = f.r.cfg.Checkpoints.Release(ctx, row)
	return err
}

// createRows makes rows, and completes rows that others made.
func (f *follower) createRows(ctx context.Context, create []Lease) error {
	rows := make([]Lease, len(create))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(callsMax)
	for i, lease := range create {
		group.Go(func() (err error) {
			rows[i], err = f.createRow(ctx, lease)
			return err
		})
	}
	err := group.Wait()
	for _, row := range rows {
		if row.Shard != "" {
			f.note(row)
		}
	}
	if len(create) > 0 {
		f.children = childrenIn(f.leases)
		if f.fleet != nil {
			f.fleet.untold = true
		}
	}
	return err
}

// createRow makes one row, in a fleet only while this worker is the one that
// lists: another may have come to know better.
func (f *follower) createRow(ctx context.Context, lease Lease) (Lease, error) {
	if f.fleet != nil {
		office := f.fleet.holding()[f.r.cfg.StreamARN]
		if office == nil || !office.Trusted() {
			return Lease{}, leases.ErrTrustOver
		}
		var cancel context.CancelFunc
		ctx, cancel = office.Until(ctx)
		defer cancel()
	}
	lease.Whole = lease.Start != ""
	if f.fresh {
		// The oldest shards may be trimmed in part by now. That is no loss:
		// the reader takes up the stream as it is.
		whole, err := holdsStart(ctx, &f.r.cfg, shardInfo{id: lease.Shard, start: lease.Start})
		if err != nil && classify(err) == verdictRetry {
			return Lease{}, err
		}
		lease.Whole = whole
	}
	row, err := f.r.cfg.Checkpoints.Create(ctx, lease)
	if err != nil || !row.Bare {
		return row, err
	}
	row.Stream, row.Parent, row.Start, row.Whole, row.Orphan = lease.Stream, lease.Parent, lease.Start, lease.Whole, lease.Orphan
	return f.r.cfg.Checkpoints.Adopt(ctx, row)
}

// note takes over one row as a call has just returned it.
func (f *follower) note(row Lease) {
	if f.fleet != nil {
		f.fleet.note(f.leases[row.Shard], row)
	}
	f.leases[row.Shard] = row
}

// deleteDone deletes rows that serve nobody any more, so that the lease table
// does not grow for ever. Whatever fails is tried again after the next list.
func (f *follower) deleteDone(ctx context.Context) {
	done := map[string]int{}
	for _, lease := range f.plan.done {
		done[lease.Shard] = f.done[lease.Shard] + 1
		if done[lease.Shard] < missingLists {
			continue
		}
		if err := f.r.cfg.Checkpoints.Delete(ctx, lease); err != nil {
			f.r.cfg.Logger.Warn("an old lease could not be deleted, will retry", "shard", lease.Shard, "error", err)
			continue
		}
		delete(f.leases, lease.Shard)
	}
	f.done = done
}
