package streamreader

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/dynamill/dynamill/streamreader/internal/leases"
)

// seek makes or deletes the row by which the others see that this worker has less than its
// share of the shards. They cannot see it otherwise: it may have none yet.
func (l *fleet) seek(ctx context.Context, wants bool) {
	key := leases.SeekerKey(l.cfg.StreamARN, l.cfg.WorkerID)
	h := l.holding()[key]
	if wants == (h != nil && h.Trusted()) {
		return
	}
	ctx, cancel := l.cfg.inTime(ctx)
	defer cancel()
	l.drop(key)
	var err error
	if wants {
		began := time.Now()
		var row Lease
		row, err = l.cfg.Checkpoints.Create(ctx, Lease{Shard: key, Stream: l.cfg.StreamARN, Checkpoint: TrimHorizon})
		if err == nil {
			row, err = l.cfg.Checkpoints.Claim(ctx, row, l.cfg.worker())
		}
		if err == nil {
			l.hold(row, began)
			l.newsUnsent = true
		}
	} else {
		err = l.cfg.Checkpoints.Delete(ctx, h.Lease())
	}
	if err != nil && !errors.Is(err, ErrLeaseLost) {
		l.cfg.Logger.Warn("telling other workers whether this one wants more shards failed", "wants", wants, "error", err)
	}
}

// seeSeekers takes over the rows of seekers, by their keys.
func (l *fleet) seeSeekers(rows map[string]Lease) {
	before := l.seekers
	l.seekers = map[string]Lease{}
	for _, row := range rows {
		l.date(before[row.Owner], row)
		l.seekers[row.Owner] = row
	}
}

// silentSeekers returns the rows of seekers that are gone.
func (l *fleet) silentSeekers() (silent []Lease) {
	for _, row := range l.seekers {
		if row.Owner == "" || l.expired(row) {
			silent = append(silent, row)
		}
	}
	slices.SortFunc(silent, leases.CompareShards)
	return silent
}
