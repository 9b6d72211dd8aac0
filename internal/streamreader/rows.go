package streamreader

import (
	"context"
	"errors"

	"github.com/dynamill/dynamill/internal/stream/shardlist"
	"github.com/dynamill/dynamill/internal/stream/streamapi"

	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"golang.org/x/sync/errgroup"

	"github.com/dynamill/dynamill/internal/stream/leases"
)

// takeOverRows takes over the rows as they were just read, when so many records were done.
func (f *follower) takeOverRows(rows []leases.Lease, done int64) {
	if !f.fleet.Lists() {
		clear(f.missing) // the lister judges them
		if !f.drain {
			f.skips = shardlist.SkipDetector{}
		}
	}
	before := f.fleet.Shards
	f.fleet.See(rows)
	own := f.fleet.Own()
	f.initialListing = !shardlist.Followed(own, f.fleet.Shards)
	if own.Label != "" {
		f.decoder = streamapi.Decoder{Label: own.Label, PartitionKey: own.PartitionKey, SortKey: own.SortKey}
	}
	f.children = shardlist.ChildrenIn(f.fleet.Shards)
	f.fleet.ObserveDrain(done, f.running, &f.applies)
	for id, l := range f.fleet.Shards {
		if was, known := before[id]; known && l.Finished() && !was.Finished() && len(f.children[id]) == 0 {
			f.listSoon()
		}
	}
	for id, s := range f.running {
		f.fleet.NoteAnswer(s.Snapshot().Answered)
		if len(f.children[id]) > 0 {
			s.Observe(streamapi.Shard{Closed: true}, f.children[id], streams.StreamStatusEnabled)
		}
	}
}

// createRows makes rows, and completes rows that others made. Only the lister does so.
func (f *follower) createRows(ctx context.Context, create []leases.Lease) error {
	if !f.fleet.Lists() {
		return nil
	}
	rows := make([]leases.Lease, len(create))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(leases.CallsMax)
	for i, lease := range create {
		group.Go(func() (err error) {
			rows[i], err = f.createRow(ctx, lease)
			return err
		})
	}
	err := group.Wait()
	for _, row := range rows {
		if row.Shard != "" {
			f.fleet.Note(row)
		}
	}
	if len(create) > 0 {
		f.children = shardlist.ChildrenIn(f.fleet.Shards)
		f.fleet.NoteNews()
	}
	return err
}

// createRow makes one row, only while this worker is the lister: another one may
// have come to know better.
func (f *follower) createRow(ctx context.Context, lease leases.Lease) (leases.Lease, error) {
	list := f.fleet.ListLease()
	if list == nil || !list.Valid() {
		return leases.Lease{}, leases.ErrNotRenewed
	}
	ctx, cancelValid := list.Until(ctx)
	defer cancelValid()
	lease.Whole = lease.Start != ""
	if f.initialListing {
		// The oldest shards may be trimmed in part by now. That is no loss:
		// the reader takes up the stream as it is.
		whole, err := streamapi.HoldsStart(ctx, f.r.cfg.Streams, f.r.cfg.StreamARN, streamapi.Shard{ID: lease.Shard, Start: lease.Start})
		if err != nil && streamapi.Classify(err) == streamapi.VerdictRetry {
			return leases.Lease{}, err
		}
		lease.Whole = whole
	}
	ctx, cancel := f.r.cfg.worker().InTime(ctx)
	defer cancel()
	row, err := f.r.cfg.Checkpoints.Create(ctx, lease)
	if err == nil && row.Unadopted {
		row.Stream, row.Parent, row.Start, row.Whole, row.Orphan = lease.Stream, lease.Parent, lease.Start, lease.Whole, lease.Orphan
		row, err = f.r.cfg.Checkpoints.Adopt(ctx, row)
	}
	if err != nil {
		return leases.Lease{}, err // the row may be there or not
	}
	return row, nil
}

// deleteDone deletes rows that serve no worker any more, parents first: a shard whose children have no row counts as one
// whose children are not found yet. It tries again after the next list what fails.
func (f *follower) deleteDone(ctx context.Context) {
	useless := f.done.add(f.plan.Done)
	for {
		var eldest, rest []leases.Lease
		for _, lease := range useless {
			if _, older := f.fleet.Shards[lease.Parent]; older {
				rest = append(rest, lease)
			} else {
				eldest = append(eldest, lease)
			}
		}
		if len(eldest) == 0 {
			return // done, or what is left has a parent that could not be deleted
		}
		f.deleteRows(ctx, eldest)
		useless = rest
	}
}

func (f *follower) deleteRows(ctx context.Context, rows []leases.Lease) {
	for _, got := range f.each(ctx, rows, func(ctx context.Context, l leases.Lease) (leases.Lease, error) {
		return l, f.r.cfg.Checkpoints.Delete(ctx, l)
	}) {
		switch {
		case got.err == nil, errors.Is(got.err, ErrLeaseLost): // deleted before, and no answer came
			delete(f.fleet.Shards, got.row.Shard)
		case ctx.Err() == nil:
			f.r.cfg.Logger.Warn("an old lease could not be deleted, will retry", "shard", got.row.Shard, "error", got.err)
		}
	}
}
