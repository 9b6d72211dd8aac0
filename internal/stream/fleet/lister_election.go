package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dynamill/dynamill/internal/stream/leases"
	"github.com/dynamill/dynamill/internal/stream/shardread"
	"github.com/dynamill/dynamill/internal/stream/streamapi"
)

// Lists reports whether this worker is the one that lists the stream's shards.
func (m *Member) Lists() bool {
	h := m.ListLease()
	return h != nil && h.Valid()
}

// Elect makes this worker the lister, if there is none. followed
// says whether the rows show that the stream was read before it had a row of its own.
func (m *Member) Elect(ctx context.Context, followed bool) error {
	arn := m.cfg.StreamARN
	if h := m.ListLease(); h != nil {
		if h.Valid() {
			return nil
		}
		if err := m.Over(); err != nil {
			return err
		}
		m.Drop(arn)
		m.changed[arn] = time.Now()
	}
	var (
		row   leases.Lease
		err   error
		began = time.Now()
	)
	ctx, cancel := m.cfg.Worker.InTime(ctx)
	defer cancel()
	switch me := m.cfg.Worker; {
	case !m.mayElect():
		return nil
	case m.Own().Shard == "":
		row = leases.Lease{Shard: arn, Stream: arn, Owner: me.Name, Run: me.Run, Term: me.Term, Counter: 1, Checkpoint: leases.TrimHorizon}
		if followed {
			row.Checkpoint = leases.Latest
		}
		row, err = m.cfg.Store.Create(ctx, row)
	default:
		row, err = m.cfg.Store.Claim(ctx, m.Own(), me)
	}
	if err != nil && !errors.Is(err, leases.ErrLost) {
		return err
	}
	if row.Shard == "" {
		return nil // deleted meanwhile
	}
	m.Note(row)
	if err == nil && row.Owner == m.cfg.Worker.Name && row.Run == m.cfg.Worker.Run {
		m.cfg.Logger.Info("this worker lists the stream's shards now", "worker", m.cfg.Worker.Name)
		m.stalls.lists = time.Time{}
		m.Hold(row, began)
	}
	return nil
}

// mayElect reports whether there is no lister, so that this worker may become it.
func (m *Member) mayElect() bool {
	if time.Now().Before(m.stalls.mayListAt) || m.ListLease() != nil {
		return false
	}
	own, in := m.Own(), m.input()
	in.Now = m.scans.ownAt
	return own.Owner == "" || own.Owner == m.cfg.Worker.Name || in.Expired(own)
}

// Over is the error of a worker that must end: another process of its name is at work.
func (m *Member) Over() error {
	if h := m.ListLease(); h != nil && errors.Is(h.Cause(), leases.ErrNamesake) {
		return h.Cause()
	}
	if m.namesake {
		return fmt.Errorf("%w: %q", leases.ErrNamesake, m.cfg.Worker.Name)
	}
	return nil
}

// Describe notes in the stream's own row what workers that do not list must
// know of the stream, and whether all its shards have rows.
func (m *Member) Describe(ctx context.Context, d streamapi.Decoder, checkpoint string) error {
	h := m.ListLease()
	if h == nil {
		return leases.ErrNotRenewed
	}
	if row := h.Lease(); row.Checkpoint == checkpoint && row.Label == d.Label && row.PartitionKey == d.PartitionKey &&
		row.SortKey == d.SortKey {
		return nil
	}
	err := h.Save(ctx, func(row *leases.Lease) {
		if row.Label, row.PartitionKey, row.SortKey = d.Label, d.PartitionKey, d.SortKey; row.Checkpoint != leases.Latest {
			row.Checkpoint = checkpoint // unless it was written and no answer came
		}
	})
	m.set(h.Lease())
	return err
}

// ListLease is the lease of the list, if this worker has it; otherwise nil.
func (m *Member) ListLease() *leases.Held {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.held[m.cfg.StreamARN]
}

// ListSucceeded notes that the stream has answered with a list.
func (m *Member) ListSucceeded() { m.stalls.lists = time.Time{} }

// ListFailed notes that a list failed. After a while it leaves the list of the shards
// to another worker, and reports that.
func (m *Member) ListFailed(ctx context.Context) bool {
	h := m.ListLease()
	if h == nil || !h.Valid() {
		return false
	}
	if m.stalls.lists.IsZero() {
		m.stalls.lists = time.Now()
	}
	if time.Since(m.stalls.lists) < m.cfg.Worker.Term {
		return false
	}
	m.stalls.lists, m.stalls.mayListAt = time.Time{}, time.Now().Add(PauseTerms*m.cfg.Worker.Term)
	ctx, cancel := context.WithTimeout(ctx, shardread.ReleaseMax)
	defer cancel()
	m.releaseList(ctx, h)
	m.Note(h.Lease())
	m.Drop(m.cfg.StreamARN)
	return true
}

func (m *Member) releaseList(ctx context.Context, h *leases.Held) {
	if err := h.Release(ctx, func(*leases.Lease) {}); err != nil && !errors.Is(err, leases.ErrLost) {
		m.cfg.Logger.Warn("the lease of the stream's list could not be released", "error", err) // it ends by itself
	}
}
