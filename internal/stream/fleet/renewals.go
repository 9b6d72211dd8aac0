package fleet

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/dynamill/dynamill/internal/pace"
	"github.com/dynamill/dynamill/internal/stream/leases"
	"github.com/dynamill/dynamill/internal/stream/shardread"
	"github.com/dynamill/dynamill/internal/stream/streamapi"
)

// Hold takes charge of a lease that was claimed by a call which began at claimed.
func (m *Member) Hold(row leases.Lease, claimed time.Time) *leases.Held {
	h := leases.Hold(m.cfg.Store, row, m.cfg.Worker.Term, claimed)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held[row.Shard] = h
	if m.renewal == nil {
		var ctx context.Context
		ctx, m.renewal = context.WithCancel(context.Background())
		m.wg.Go(func() { m.renew(ctx) })
	}
	return h
}

// Drop ends the charge of a lease. Its row stays as it is.
func (m *Member) Drop(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if h := m.held[id]; h != nil {
		h.Leave()
		delete(m.held, id)
	}
}

// holding returns the leases held, by the rows' keys.
func (m *Member) holding() map[string]*leases.Held {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.held)
}

// slowPart of a term is how long a renewal keeps its place among those that are
// made at the same time. What hangs keeps no others from being renewed.
const slowPart = 100

// renew renews the leases that are due until ctx ends, also while the shards are released. No row waits for another.
// Each pause is up to a tenth shorter by chance, so that a fleet does not write in step.
func (m *Member) renew(ctx context.Context) {
	places := make(chan struct{}, leases.CallsMax)
	var group sync.WaitGroup
	defer group.Wait()
	random := rand.New(rand.NewPCG(streamapi.NameHash(m.cfg.Worker.Name), 1))
	pause := m.cfg.Worker.Term / (4 * leases.RenewalsPerTerm)
	for pace.Sleep(ctx, pause-time.Duration(random.Int64N(int64(pause/10)+1))) == nil {
		for id, h := range m.holding() {
			if !h.BeginRenewal() {
				continue
			}
			group.Go(func() {
				select {
				case places <- struct{}{}:
				case <-ctx.Done():
					return
				}
				leave := sync.OnceFunc(func() { <-places })
				defer leave()
				defer time.AfterFunc(m.cfg.Worker.Term/slowPart, leave).Stop()
				if err := h.Renew(ctx); err != nil && !errors.Is(err, leases.ErrLost) && ctx.Err() == nil {
					m.cfg.Logger.Warn("renewing a lease failed, will retry", "shard", id, "error", err)
				}
			})
		}
	}
}

// Stop gives back the stream's own lease, once the shards are let go.
func (m *Member) Stop() {
	ctx, cancel := context.WithTimeout(context.Background(), shardread.ReleaseMax)
	defer cancel()
	m.Seek(ctx, false)
	if h := m.ListLease(); h != nil && h.Valid() {
		m.releaseList(ctx, h)
	}
	m.newsUnsent = true
	m.SendNews(ctx)
	if m.renewal != nil {
		m.renewal()
	}
	m.wg.Wait()
	for id := range m.holding() {
		m.Drop(id)
	}
}
