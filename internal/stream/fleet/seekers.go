package fleet

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/dynamill/dynamill/internal/stream/leases"
)

// Seek makes or deletes the row by which the others see that this worker has less than its
// share of the shards. They cannot see it otherwise: it may have none yet.
func (m *Member) Seek(ctx context.Context, wants bool) {
	key := leases.SeekerKey(m.cfg.StreamARN, m.cfg.Worker.Name)
	h := m.holding()[key]
	if wants == (h != nil && h.Valid()) {
		return
	}
	ctx, cancel := m.cfg.Worker.InTime(ctx)
	defer cancel()
	m.Drop(key)
	var err error
	if wants {
		began := time.Now()
		var row leases.Lease
		row, err = m.cfg.Store.Create(ctx, leases.Lease{Shard: key, Stream: m.cfg.StreamARN, Checkpoint: leases.TrimHorizon})
		if err == nil {
			row, err = m.cfg.Store.Claim(ctx, row, m.cfg.Worker)
		}
		if err == nil {
			m.Hold(row, began)
			m.newsUnsent = true
		}
	} else {
		err = m.cfg.Store.Delete(ctx, h.Lease())
	}
	if err != nil && !errors.Is(err, leases.ErrLost) {
		m.cfg.Logger.Warn("telling other workers whether this one wants more shards failed", "wants", wants, "error", err)
	}
}

// SilentSeekers returns the rows of seekers that are gone.
func (m *Member) SilentSeekers() (silent []leases.Lease) {
	for _, row := range m.rows {
		if row.OfSeeker() && (row.Owner == "" || m.Expired(row)) {
			silent = append(silent, row)
		}
	}
	slices.SortFunc(silent, leases.CompareShards)
	return silent
}
