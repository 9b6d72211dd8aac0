package shardread

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/pace"
	"github.com/dynamill/dynamill/internal/stream/leases"
	"github.com/dynamill/dynamill/internal/stream/streamapi"
)

// Processor applies records. records[:done] are durable when it returns; an error says why the rest is not. Calls for
// different shards run at the same time. The context lasts until StopTimeout after a stop.
type Processor interface {
	Process(ctx context.Context, records []change.Record) (done int, err error)
}

// Claim is a shard that a worker has claimed, and has read no record of yet.
type Claim struct {
	Shard      string
	Parent     string // "" if the shard has none, or its row is gone
	Orphan     bool   // the stream had dropped the parent when the shard was first listed
	Checkpoint string // sequence number of the last record done; "" if none is
	// Trimmed returns the sequence number up to which the stream has dropped records behind the checkpoint; "" if it holds all of them.
	// Without a checkpoint, that may have been before the shard was first listed.
	Trimmed func(ctx context.Context) (upTo string, err error)
}

// errLeaseChanged says that a lease is not as it was claimed, or that the parent's row says there is more to do.
var errLeaseChanged = fmt.Errorf("%w: its row, or the row of its parent, was changed while the shard was opened", leases.ErrLost)

// errSilent says that the stream does not tell what it has dropped of a shard. Another worker may be able to ask it.
var errSilent = errors.New("asking the stream")

// open asks for the processor of this shard, and then looks at the leases once more: whatever was noted of the shard's checkpoint holds
// only if no person or program has changed them meanwhile. A worker that the stream does not answer for too long gives the shard up.
func (s *Reader) open(ctx context.Context) error {
	if s.cfg.Open == nil {
		return nil
	}
	for ctx.Err() == nil {
		err := s.openOnce(ctx)
		switch {
		case err == nil:
			s.silentSince = time.Time{}
			return nil
		case errors.Is(err, leases.ErrLost), streamapi.StopsReading(err):
			return err
		case ctx.Err() != nil:
			return nil
		}
		if errors.Is(err, errSilent) {
			if result, err := s.unanswered(err); result == outcomeFatal {
				return err
			}
		}
		wait := s.failing.NextBackOff()
		s.cfg.Logger.Warn("opening a shard failed, will retry", "shard", s.Info.ID, "wait", wait, "error", err)
		if pace.Sleep(ctx, wait) != nil {
			return nil
		}
	}
	return nil
}

func (s *Reader) openOnce(ctx context.Context) error {
	claimed := s.Held.Lease()
	parent, err := s.parentRow(ctx, claimed)
	if err != nil {
		return err
	}
	c := Claim{Shard: claimed.Shard, Parent: parent.Shard, Orphan: claimed.Orphan}
	if claimed.Checkpoint != leases.TrimHorizon {
		c.Checkpoint = claimed.Checkpoint
	}
	c.Trimmed = func(ctx context.Context) (string, error) {
		upTo, err := streamapi.Dropped(ctx, s.cfg.Streams, s.cfg.StreamARN, s.Info, c.Checkpoint)
		if err != nil {
			err = fmt.Errorf("%w: %w", errSilent, err)
		}
		return upTo, err
	}
	processor, err := s.cfg.Open(ctx, c)
	if err != nil {
		return err
	}
	now, err := s.cfg.Row(ctx, claimed.Shard)
	if err != nil {
		return err
	}
	if parent, err = s.parentRow(ctx, claimed); err != nil {
		return err
	}
	same := now.Owner == claimed.Owner && now.Run == claimed.Run && now.Checkpoint == claimed.Checkpoint
	if !same || parent.Shard != "" && !parent.Finished() {
		return errLeaseChanged
	}
	s.processor = processor
	return nil
}

// parentRow reads the row of a shard's parent; the zero Lease if there is none.
func (s *Reader) parentRow(ctx context.Context, l leases.Lease) (leases.Lease, error) {
	if l.Parent == "" {
		return leases.Lease{}, nil
	}
	return s.cfg.Row(ctx, l.Parent)
}
