package leases

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// Memory keeps leases in memory, for tests and demonstrations.
type Memory struct {
	mu     sync.Mutex
	leases map[string]Lease
}

var _ Store = (*Memory)(nil)

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return &Memory{leases: map[string]Lease{}}
}

// Load returns every row, in order of shard ids.
func (m *Memory) Load(context.Context) ([]Lease, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []Lease
	for _, l := range m.leases {
		all = append(all, l)
	}
	slices.SortFunc(all, CompareShards)
	return all, nil
}

// Create adds a row if the shard has none.
func (m *Memory) Create(_ context.Context, lease Lease) (Lease, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l, ok := m.leases[lease.Shard]; ok {
		return l, nil
	}
	m.leases[lease.Shard] = lease
	return lease, nil
}

// Get returns one row.
func (m *Memory) Get(_ context.Context, shard string) (Lease, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.leases[shard], nil
}

// Claim makes worker the row's owner.
func (m *Memory) Claim(_ context.Context, lease Lease, worker Worker) (Lease, error) {
	return m.replace(lease, func(l Lease) bool { return l.holds(lease) || worker.mayClaim(l, lease) },
		func(l Lease) Lease { return l.claimedBy(worker) })
}

// Adopt writes what is known of the shard.
func (m *Memory) Adopt(_ context.Context, lease Lease) (Lease, error) {
	return m.replace(lease, func(Lease) bool { return true }, func(l Lease) Lease {
		if l.Unadopted {
			l = l.adopted(lease)
		}
		return l
	})
}

// Renew raises the counter.
func (m *Memory) Renew(_ context.Context, lease Lease) (Lease, error) {
	return m.replace(lease, lease.holds, func(l Lease) Lease { return l.renewed(lease) })
}

// Save writes what the owner has to say.
func (m *Memory) Save(_ context.Context, lease Lease) (Lease, error) {
	return m.replace(lease, lease.holds, func(l Lease) Lease { return l.saved(lease) })
}

// Request names the next owner.
func (m *Memory) Request(_ context.Context, lease Lease, worker string) (Lease, error) {
	return m.replace(lease, lease.mayBeAskedFor, func(l Lease) Lease {
		l.Next = worker
		return l
	})
}

// Withdraw takes a request back.
func (m *Memory) Withdraw(_ context.Context, lease Lease, worker Worker) error {
	_, err := m.replace(lease, func(l Lease) bool { return l.Next == worker.Name || worker.has(l) }, func(l Lease) Lease {
		if worker.has(l) {
			return l.released(l)
		}
		l.Next = ""
		return l
	})
	return err
}

// Release gives the row up.
func (m *Memory) Release(_ context.Context, lease Lease) (Lease, error) {
	return m.replace(lease, lease.holds, func(l Lease) Lease { return l.released(lease) })
}

// Evict releases the row of an owner that is silent.
func (m *Memory) Evict(_ context.Context, lease Lease) (Lease, error) {
	return m.replace(lease, lease.holds, Lease.evicted)
}

// Announce raises the News of the stream's own row.
func (m *Memory) Announce(_ context.Context, streamARN string, lost Loss) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l, ok := m.leases[streamARN]; ok {
		m.leases[streamARN] = l.announced(lost)
	}
	return nil
}

// Delete removes one row.
func (m *Memory) Delete(_ context.Context, lease Lease) error {
	if _, err := m.replace(lease, lease.holds, func(l Lease) Lease { return l }); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.leases, lease.Shard)
	return nil
}

// Forget deletes the stream's rows.
func (m *Memory) Forget(_ context.Context, streamARN string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, l := range m.leases {
		if l.Stream == streamARN {
			delete(m.leases, id)
		}
	}
	return nil
}

func (m *Memory) replace(lease Lease, may func(row Lease) bool, change func(row Lease) Lease) (Lease, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, ok := m.leases[lease.Shard]
	if !ok {
		return lease, fmt.Errorf("shard %s: %w", lease.Shard, ErrLost)
	}
	if !may(l) {
		return l, fmt.Errorf("shard %s: %w", lease.Shard, lease.lostTo(l))
	}
	l = change(l)
	m.leases[lease.Shard] = l
	return l, nil
}
