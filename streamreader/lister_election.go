package streamreader

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dynamill/dynamill/streamreader/internal/leases"
	"github.com/dynamill/dynamill/streamreader/internal/shardread"
	"github.com/dynamill/dynamill/streamreader/internal/streamapi"
)

// lists reports whether this worker is the one that lists the stream's shards.
func (l *fleet) lists() bool {
	l.mu.Lock()
	h := l.held[l.cfg.StreamARN]
	l.mu.Unlock()
	return h != nil && h.Trusted()
}

// elect makes this worker the lister, if there is none. followed
// says whether the rows show that the stream was read before it had a row of its own.
func (l *fleet) elect(ctx context.Context, followed bool) error {
	arn := l.cfg.StreamARN
	if h := l.holding()[arn]; h != nil {
		if h.Trusted() {
			return nil
		}
		if err := l.namesakeError(); err != nil {
			return err
		}
		l.drop(arn)
		l.changed[arn] = time.Now()
	}
	var (
		row   Lease
		err   error
		began = time.Now()
	)
	ctx, cancel := l.cfg.inTime(ctx)
	defer cancel()
	switch me := l.cfg.worker(); {
	case !l.mayElect():
		return nil
	case l.own.Shard == "":
		row = Lease{Shard: arn, Stream: arn, Owner: me.Name, Run: me.Run, Term: me.Term, Counter: 1, Checkpoint: TrimHorizon}
		if followed {
			row.Checkpoint = Latest
		}
		row, err = l.cfg.Checkpoints.Create(ctx, row)
	default:
		row, err = l.cfg.Checkpoints.Claim(ctx, l.own, me)
	}
	if err != nil && !errors.Is(err, ErrLeaseLost) {
		return err
	}
	if row.Shard == "" {
		return nil // deleted meanwhile
	}
	l.date(l.own, row)
	l.own = row
	if err == nil && row.Owner == l.cfg.WorkerID && row.Run == l.cfg.RunID {
		l.cfg.Logger.Info("this worker lists the stream's shards now", "worker", l.cfg.WorkerID)
		l.stalls.lists = time.Time{}
		l.hold(row, began)
	}
	return nil
}

// mayElect reports whether there is no lister, so that this worker may become it.
func (l *fleet) mayElect() bool {
	if time.Now().Before(l.stalls.mayListAt) || l.holding()[l.cfg.StreamARN] != nil {
		return false
	}
	silent := l.scans.ownAt.Sub(l.changed[l.cfg.StreamARN])
	return l.own.Shard == "" || l.own.Owner == "" || l.own.Owner == l.cfg.WorkerID || silent >= l.input().TermOf(l.own)
}

// namesakeError is the error of a worker that finds another process of its name at work.
func (l *fleet) namesakeError() error {
	if h := l.holding()[l.cfg.StreamARN]; h != nil && errors.Is(h.Cause(), ErrNamesake) {
		return h.Cause()
	}
	if l.namesake {
		return fmt.Errorf("%w: %q", ErrNamesake, l.cfg.WorkerID)
	}
	return nil
}

// describe notes in the stream's own row what workers that do not list must
// know of the stream, and whether all its shards have rows.
func (l *fleet) describe(ctx context.Context, d streamapi.Decoder, checkpoint string) error {
	h := l.holding()[l.cfg.StreamARN]
	if h == nil {
		return leases.ErrTrustOver
	}
	if row := h.Lease(); row.Checkpoint == checkpoint && row.Label == d.Label && row.PartitionKey == d.PartitionKey && row.SortKey == d.SortKey {
		return nil
	}
	err := h.Save(ctx, func(row *Lease) {
		if row.Label, row.PartitionKey, row.SortKey = d.Label, d.PartitionKey, d.SortKey; row.Checkpoint != Latest {
			row.Checkpoint = checkpoint // unless it was written and no answer came
		}
	})
	l.own = h.Lease()
	return err
}

// resign leaves the list of the shards to another worker for a while.
func (l *fleet) resign(ctx context.Context) {
	l.stalls.lists, l.stalls.mayListAt = time.Time{}, time.Now().Add(pauseTerms*l.cfg.LeaseTerm)
	arn := l.cfg.StreamARN
	h := l.holding()[arn]
	if h == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, shardread.ReleaseMax)
	defer cancel()
	before := l.own
	if err := h.Release(ctx, func(*Lease) {}); err != nil {
		l.cfg.Logger.Warn("the lease of the stream's list could not be released", "error", err) // it ends by itself
	}
	l.own = h.Lease()
	l.date(before, l.own)
	l.drop(arn)
}
