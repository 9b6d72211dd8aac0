package counting

import (
	"context"
	"fmt"

	"github.com/dynamill/dynamill/internal/awscall"
	"github.com/dynamill/dynamill/internal/lanes"
	"github.com/dynamill/dynamill/internal/stream/leases"
	"github.com/dynamill/dynamill/internal/stream/shardlist"
	"github.com/dynamill/dynamill/internal/stream/streamapi"
)

// begin finds out from where on the count reads each shard, and makes the generation's rows of shards if it is to be seeded. The leases are
// read before the table is.
func (c *count) begin(ctx context.Context) error {
	begun, err := c.Generation.Begun(ctx)
	if err != nil {
		return err
	}
	rows, err := c.takeLeases(ctx)
	if err != nil {
		return fmt.Errorf("reading the leases: %w", err)
	}
	c.reader = &reader{count: c, lister: shardlist.Lister{Streams: c.Streams, Arn: c.StreamARN,
		Keys: streamapi.Decoder{PartitionKey: c.PartitionKey, SortKey: c.SortKey}}, shards: map[string]*shard{}, turn: make(chan struct{}, 1)}
	c.reader.turn <- struct{}{}
	extents, err := c.Generation.CountExtents(ctx)
	if err != nil {
		return err
	}
	for _, m := range extents {
		if m.Until.After(c.reader.lateUntil) {
			c.reader.lateUntil = m.Until
		}
	}
	if err := c.reader.list(ctx); err != nil {
		return err
	}
	starts, err := c.starts(ctx, rows, begun)
	if err != nil {
		return err
	}
	opened, err := c.openShards(ctx, starts)
	if err != nil {
		return err
	}
	if err := c.checkLeases(ctx, rows); err != nil {
		return err
	}
	if c.Purpose == Seed {
		if err := c.Generation.MarkBegun(ctx, c.StreamARN); err != nil {
			return err
		}
	}
	return c.findLost(ctx, opened)
}

// starts are where the generation begins in each shard, by the leases: parents first. It also says from where on the count reads each.
func (c *count) starts(ctx context.Context, rows []leases.Lease, begun bool) (starts []lanes.Start, err error) {
	byID := map[string]leases.Lease{}
	for _, l := range rows {
		byID[l.Shard] = l
	}
	for _, s := range c.reader.order {
		l, leased := byID[s.info.ID]
		if !leased {
			continue // found since: all of it is read, and its reader makes the row
		}
		s.whole = l.Whole
		start := lanes.Start{Shard: s.info.ID, From: s.claim(l)}
		if start.From == "" && c.Purpose == Seed && !begun { // the shard was never read: what the stream has dropped is no loss
			upTo, err := c.dropped(ctx, s)
			if err != nil {
				return nil, err
			}
			start.From = upTo
		}
		if _, there := byID[s.info.Parent]; there {
			start.Parent = s.info.Parent
		}
		if p := c.reader.shards[s.info.Parent]; p != nil && !p.finished {
			s.rewind() // its parent was set back, or is read still
		}
		starts = append(starts, start)
	}
	for _, l := range rows {
		if c.Purpose == Seed && c.reader.shards[l.Shard] == nil && !l.Finished() { // the stream has forgotten it
			starts = append(starts, lanes.Start{Shard: l.Shard, From: lanes.Pad(streamapi.Highest)})
		}
	}
	return starts, nil
}

// takeLeases reads the leases. A Seed evicts their owners: an owner that does not know the generation can then not save a checkpoint.
func (c *count) takeLeases(ctx context.Context) ([]leases.Lease, error) {
	return awscall.Persist(ctx, retryTime, func() ([]leases.Lease, error) {
		if c.Purpose == Seed {
			return leases.EvictOwners(ctx, c.Leases, c.StreamARN)
		}
		return c.Leases.Load(ctx)
	})
}

// checkLeases has the count start again if a lease was set back or deleted since it was read. A worker adds what is between the start of a
// generation's row and the checkpoint before it saves the checkpoint. Of one that was set back before the row was there, it has yet to
// add it, and this count, which reads what follows the checkpoint as it was, would not take it off.
func (c *count) checkLeases(ctx context.Context, before []leases.Lease) error {
	rows, err := awscall.Persist(ctx, retryTime, func() ([]leases.Lease, error) { return c.Leases.Load(ctx) })
	if err != nil {
		return fmt.Errorf("reading the leases again: %w", err)
	}
	now := map[string]leases.Lease{}
	for _, l := range rows {
		now[l.Shard] = l
	}
	for _, l := range before {
		if c.reader.shards[l.Shard] != nil && doneUpTo(now[l.Shard]) < doneUpTo(l) {
			return errAgain{"the lease of shard " + l.Shard + " was set back while the count began"}
		}
	}
	return nil
}

// doneUpTo is the padded position up to which a shard's readers are done, by its lease.
func doneUpTo(l leases.Lease) string {
	switch {
	case l.Finished():
		return lanes.Pad(streamapi.Highest)
	case l.Checkpoint == leases.TrimHorizon:
		return ""
	}
	return lanes.Pad(l.Checkpoint)
}

// openShards returns the generation's rows of shards; one that has none gets it only from a seeding count.
func (c *count) openShards(ctx context.Context, starts []lanes.Start) ([]lanes.Shard, error) {
	if c.Purpose == Seed {
		return c.Generation.OpenShards(ctx, starts)
	}
	rows, err := c.Generation.Shards(ctx)
	opened := make([]lanes.Shard, len(starts))
	for i, s := range starts {
		opened[i] = rows[s.Shard]
	}
	return opened, err
}

// findLost finds shards whose records the stream has dropped although the generation needs them.
func (c *count) findLost(ctx context.Context, opened []lanes.Shard) error {
	for _, row := range opened {
		s := c.reader.shards[row.Shard]
		if s == nil || s.finished {
			continue
		}
		dropped, err := c.dropped(ctx, s)
		if err != nil {
			return err
		}
		if dropped <= s.start {
			continue
		}
		if dropped > row.From {
			if c.Purpose == Verify {
				return errAgain{"the stream has dropped records of shard " + row.Shard}
			}
			return c.Generation.Recount(ctx, "the stream has dropped records of shard "+row.Shard)
		}
		s.start, s.at = dropped, max(s.at, dropped)
		s.finished = dropped == lanes.Pad(streamapi.Highest)
	}
	return nil
}

// dropped is the padded position up to which the stream has dropped records of a shard that the count is to read; "" if it holds them all.
func (c *count) dropped(ctx context.Context, s *shard) (string, error) {
	upTo, err := awscall.Persist(ctx, retryTime, func() (string, error) {
		return streamapi.Dropped(ctx, c.Streams, c.StreamARN, s.info, lanes.Unpad(s.start))
	})
	return lanes.Pad(upTo), asErrAgain(s.info.ID, err)
}
