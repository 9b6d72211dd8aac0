package streamreader

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// The sentinels of a checkpoint, as the Kinesis Client Library names them.
// Every other checkpoint is the sequence number of the last record done.
const (
	TrimHorizon = "TRIM_HORIZON" // nothing of the shard is done
	ShardEnd    = "SHARD_END"    // the shard is closed and everything in it is done
)

// Lease is one row of the lease table: how far one shard is done, and by whom.
type Lease struct {
	Shard      string
	Stream     string // ARN of the stream that the shard belongs to
	Owner      string // the process that reads the shard
	Counter    int64  // raised by every write to the row
	Checkpoint string // TrimHorizon, a sequence number, or ShardEnd
	Switches   int64  // changes of owner since the last checkpoint
	Parent     string // "" if the shard has none
	Children   []string
	// Whole says that the shard still held its first record when the reader
	// found it, so that nothing of it may go missing afterwards. Of a shard
	// that was partly trimmed before the reader first met the stream, that
	// cannot be asked.
	Whole bool
}

// Finished reports whether everything in the shard is done.
func (l Lease) Finished() bool { return l.Checkpoint == ShardEnd }

// Checkpoints keeps the leases. Implementations are safe for concurrent use.
// Claim, Save and Delete return ErrLeaseLost if the row's counter is not the given
// lease's.
type Checkpoints interface {
	// Load returns every row, those of other streams of the table too.
	Load(ctx context.Context) ([]Lease, error)
	// Create adds a row if the shard has none, and returns the row in force.
	Create(ctx context.Context, lease Lease) (Lease, error)
	// Claim makes this process the row's owner.
	Claim(ctx context.Context, lease Lease) (Lease, error)
	// Save writes the lease's Checkpoint and Children.
	Save(ctx context.Context, lease Lease) (Lease, error)
	// Delete removes one row.
	Delete(ctx context.Context, lease Lease) error
	// Forget deletes every row of a stream. The next reader starts with the
	// oldest records that the stream holds. It is for use before a replay, after a
	// TrimmedError, while no reader runs.
	Forget(ctx context.Context, streamARN string) error
}

// MemoryCheckpoints keeps leases in memory, for tests and demonstrations.
type MemoryCheckpoints struct {
	mu     sync.Mutex
	leases map[string]Lease
}

var _ Checkpoints = (*MemoryCheckpoints)(nil)

// NewMemoryCheckpoints returns an empty store.
func NewMemoryCheckpoints() *MemoryCheckpoints {
	return &MemoryCheckpoints{leases: map[string]Lease{}}
}

const memoryOwner = "memory"

// Load returns every row, in order of shard ids.
func (m *MemoryCheckpoints) Load(context.Context) ([]Lease, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []Lease
	for _, l := range m.leases {
		all = append(all, l)
	}
	slices.SortFunc(all, compareShards)
	return all, nil
}

// Create adds a row if the shard has none.
func (m *MemoryCheckpoints) Create(_ context.Context, lease Lease) (Lease, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l, ok := m.leases[lease.Shard]; ok {
		return l, nil
	}
	m.leases[lease.Shard] = lease
	return lease, nil
}

// Claim makes this process the row's owner.
func (m *MemoryCheckpoints) Claim(_ context.Context, lease Lease) (Lease, error) {
	return m.replace(lease, func(l *Lease) {
		if l.Owner != memoryOwner {
			l.Switches++
		}
		l.Owner = memoryOwner
	})
}

// Save writes Checkpoint and Children.
func (m *MemoryCheckpoints) Save(_ context.Context, lease Lease) (Lease, error) {
	return m.replace(lease, func(l *Lease) {
		l.Checkpoint, l.Children, l.Switches = lease.Checkpoint, lease.Children, 0
	})
}

// Delete removes one row.
func (m *MemoryCheckpoints) Delete(_ context.Context, lease Lease) error {
	if _, err := m.replace(lease, func(*Lease) {}); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.leases, lease.Shard)
	return nil
}

// Forget deletes the stream's rows.
func (m *MemoryCheckpoints) Forget(_ context.Context, streamARN string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, l := range m.leases {
		if l.Stream == streamARN {
			delete(m.leases, id)
		}
	}
	return nil
}

func (m *MemoryCheckpoints) replace(lease Lease, change func(*Lease)) (Lease, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, ok := m.leases[lease.Shard]
	if !ok || l.Counter != lease.Counter {
		return lease, fmt.Errorf("shard %s: %w", lease.Shard, ErrLeaseLost)
	}
	change(&l)
	l.Counter++
	m.leases[lease.Shard] = l
	return l, nil
}
