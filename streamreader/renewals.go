package streamreader

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/dynamill/dynamill/streamreader/internal/leases"
	"github.com/dynamill/dynamill/streamreader/internal/shardread"
	"github.com/dynamill/dynamill/streamreader/internal/streamapi"
)

// hold takes charge of a lease that was claimed by a call which began at claimed.
func (l *fleet) hold(row Lease, claimed time.Time) *leases.Held {
	h := leases.Hold(l.cfg.Checkpoints, row, l.cfg.LeaseTerm, claimed)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[row.Shard] = h
	if l.renewal == nil {
		var ctx context.Context
		ctx, l.renewal = context.WithCancel(context.Background())
		l.wg.Go(func() { l.renew(ctx) })
	}
	return h
}

func (l *fleet) drop(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h := l.held[id]; h != nil {
		h.Leave()
		delete(l.held, id)
	}
}

// holding returns the leases held, by the rows' keys.
func (l *fleet) holding() map[string]*leases.Held {
	l.mu.Lock()
	defer l.mu.Unlock()
	held := make(map[string]*leases.Held, len(l.held))
	for id, h := range l.held {
		held[id] = h
	}
	return held
}

// slowPart of a term is how long a renewal keeps its place among those that are
// made at the same time. What hangs keeps no others from being renewed.
const slowPart = 100

// renew renews the leases that are due until ctx ends, also while the shards
// are being let go. No row waits for another.
func (l *fleet) renew(ctx context.Context) {
	places := make(chan struct{}, callsMax)
	var group sync.WaitGroup
	defer group.Wait()
	for streamapi.Sleep(ctx, l.cfg.LeaseTerm/(4*leases.RenewalsPerTerm)) == nil {
		for id, h := range l.holding() {
			if !h.Due() || !l.beginRenewal(id) {
				continue
			}
			group.Go(func() {
				defer l.endRenewal(id)
				select {
				case places <- struct{}{}:
				case <-ctx.Done():
					return
				}
				leave := sync.OnceFunc(func() { <-places })
				defer leave()
				defer time.AfterFunc(l.cfg.LeaseTerm/slowPart, leave).Stop()
				if err := h.Renew(ctx); err != nil && !errors.Is(err, ErrLeaseLost) && ctx.Err() == nil {
					l.cfg.Logger.Warn("renewing a lease failed, will retry", "shard", id, "error", err)
				}
			})
		}
	}
}

// beginRenewal reports whether no renewal of the lease is under way yet.
func (l *fleet) beginRenewal(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	under := l.renewing[id]
	l.renewing[id] = true
	return !under
}

func (l *fleet) endRenewal(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.renewing, id)
}

// stop gives back the stream's own lease, once the shards are let go.
func (l *fleet) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), shardread.ReleaseMax)
	defer cancel()
	l.seek(ctx, false)
	if h := l.holding()[l.cfg.StreamARN]; h != nil && h.Trusted() {
		if err := h.Release(ctx, func(*Lease) {}); err != nil && !errors.Is(err, ErrLeaseLost) {
			l.cfg.Logger.Warn("the lease of the stream's list could not be released", "error", err)
		}
	}
	l.announce(ctx, leases.Loss{})
	if l.renewal != nil {
		l.renewal()
	}
	l.wg.Wait()
	for id := range l.holding() {
		l.drop(id)
	}
}
