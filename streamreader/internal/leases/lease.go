package leases

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dynamill/dynamill/internal/guard"
)

// The sentinels of a checkpoint, as the Kinesis Client Library names them.
// Every other checkpoint is the sequence number of the last record done.
const (
	TrimHorizon = "TRIM_HORIZON" // nothing of the shard is done
	ShardEnd    = "SHARD_END"    // the shard is closed and everything in it is done
	Latest      = "LATEST"       // of a stream's own row only: all shards that the stream had at first have rows
)

// Lease is one row of the lease table: how far one shard is done, and by whom.
// Beside its shards each stream has a row of its own, whose owner lists the
// stream's shards and makes and deletes their rows.
type Lease struct {
	Shard      string // of a stream's own row: the stream's ARN
	Stream     string // ARN of the stream that the shard belongs to
	Owner      string // the worker that reads the shard; "" if nobody does
	Next       string // the worker that has asked for the shard and gets it as soon as Owner has finished its batch
	Counter    int64  // raised by every write to the row but that of Next
	Checkpoint string // TrimHorizon, a sequence number, or ShardEnd
	Switches   int64  // changes of owner since the last checkpoint
	Parent     string // "" if the shard has none
	Children   []string
	// Whole says that the shard still held its first record when the reader
	// found it, so that nothing of it may go missing afterwards. Of a shard
	// that was partly trimmed before the reader first met the stream, that
	// cannot be asked.
	Whole bool
	// Start is the sequence number of the shard's first record; "" if unknown.
	Start string
	// Orphan says that the stream did not hold the parent any more when it was
	// first listed, so that no row of the parent is waited for.
	Orphan bool
	// EmptyPolls is how often in a row the owner found nothing in the open
	// shard, as of its last write.
	EmptyPolls int64
	// Newest is when the newest record that was done was created, in whole
	// seconds, as of the owner's last write; zero if none was.
	Newest time.Time
	// Of a stream's own row only: its label, and the table's key attributes.
	Label, PartitionKey, SortKey string
}

// Finished reports whether everything in the shard is done.
func (l Lease) Finished() bool { return l.Checkpoint == ShardEnd }

// OfStream reports whether this is a stream's own row, not a shard's.
func (l Lease) OfStream() bool { return l.Shard == l.Stream && l.Stream != "" }

// Store keeps the leases. Implementations are safe for concurrent use.
// Claim, Renew, Save, Release and Delete write only to the row that they are
// given, as its counter and owner tell; else they return ErrLost, together
// with the row in force if there is one. A worker's name may not be used by two
// processes at a time.
type Store interface {
	// Load returns every row, consistently, those of other streams of the table too.
	Load(ctx context.Context) ([]Lease, error)
	// Create adds a row if the shard has none, and returns the row in force.
	Create(ctx context.Context, lease Lease) (Lease, error)
	// Claim makes worker the row's owner. It succeeds also if the row names
	// worker as its owner already, whatever its counter.
	Claim(ctx context.Context, lease Lease, worker string) (Lease, error)
	// Renew raises the counter, and writes EmptyPolls and Newest.
	Renew(ctx context.Context, lease Lease) (Lease, error)
	// Save is Renew that also writes the lease's Checkpoint and Children, and
	// what belongs to a stream's own row.
	Save(ctx context.Context, lease Lease) (Lease, error)
	// Request names worker as the next owner, unless another has been named or
	// the owner has changed (ErrLost).
	Request(ctx context.Context, lease Lease, worker string) (Lease, error)
	// Withdraw takes back what Request wrote; a row that was handed over to
	// worker meanwhile is released.
	Withdraw(ctx context.Context, lease Lease, worker string) error
	// Release writes the lease's Checkpoint and, by the same write, makes the
	// one who has asked for the row its owner, or else nobody.
	Release(ctx context.Context, lease Lease) (Lease, error)
	// Delete removes one row.
	Delete(ctx context.Context, lease Lease) error
	// Forget deletes every row of a stream. The next reader starts with the
	// oldest records that the stream holds. It is for use before a replay, after a
	// TrimmedError, while no reader runs.
	Forget(ctx context.Context, streamARN string) error
}

// What follows says how each write changes a row, for every kind of store.

func (l Lease) claimedBy(worker string) Lease {
	if l.Owner != worker {
		l.Switches++
	}
	l.Owner, l.Next, l.EmptyPolls = worker, "", 0
	l.Counter++
	return l
}

func (l Lease) renewed(by Lease) Lease {
	l.EmptyPolls, l.Newest = by.EmptyPolls, by.Newest
	l.Counter++
	return l
}

// saved is the row in force with what the owner's lease says.
func (l Lease) saved(by Lease) Lease {
	l.Checkpoint, l.Children, l.Switches = by.Checkpoint, by.Children, 0
	l.Label, l.PartitionKey, l.SortKey = by.Label, by.PartitionKey, by.SortKey
	return l.renewed(by)
}

func (l Lease) released(by Lease) Lease {
	next := l.Next
	l = l.saved(by)
	l.EmptyPolls = 0
	if next != "" {
		l.Switches++
	}
	l.Owner, l.Next = next, ""
	return l
}

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

// Claim makes worker the row's owner.
func (m *Memory) Claim(_ context.Context, lease Lease, worker string) (Lease, error) {
	return m.replace(lease, func(l Lease) bool { return l.holds(lease) || l.Owner == worker },
		func(l Lease) Lease { return l.claimedBy(worker) })
}

// Renew raises the counter.
func (m *Memory) Renew(_ context.Context, lease Lease) (Lease, error) {
	return m.replace(lease, lease.holds, func(l Lease) Lease { return l.renewed(lease) })
}

// Save writes what the owner has to say.
func (m *Memory) Save(_ context.Context, lease Lease) (Lease, error) {
	held := lease.holds
	if guard.Off(guard.CheckpointFenced) {
		held = func(Lease) bool { return true }
	}
	return m.replace(lease, held, func(l Lease) Lease { return l.saved(lease) })
}

// Request names the next owner.
func (m *Memory) Request(_ context.Context, lease Lease, worker string) (Lease, error) {
	return m.replace(lease, lease.mayBeAskedFor, func(l Lease) Lease {
		l.Next = worker
		return l
	})
}

// Withdraw takes a request back.
func (m *Memory) Withdraw(_ context.Context, lease Lease, worker string) error {
	_, err := m.replace(lease, func(l Lease) bool { return l.Next == worker || l.Owner == worker }, func(l Lease) Lease {
		if l.Owner == worker {
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

// CompareShards orders rows by their shards.
func CompareShards(a, b Lease) int { return cmp.Compare(a.Shard, b.Shard) }

// holds reports whether the row in force is still the one that l was read from.
func (l Lease) holds(row Lease) bool { return row.Counter == l.Counter && row.Owner == l.Owner }

func (l Lease) mayBeAskedFor(row Lease) bool {
	return row.Owner == l.Owner && row.Owner != "" && row.Next == ""
}

func (m *Memory) replace(lease Lease, may func(row Lease) bool, change func(row Lease) Lease) (Lease, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, ok := m.leases[lease.Shard]
	if !ok {
		return lease, fmt.Errorf("shard %s: %w", lease.Shard, ErrLost)
	}
	if !may(l) {
		return l, fmt.Errorf("shard %s: %w", lease.Shard, ErrLost)
	}
	l = change(l)
	m.leases[lease.Shard] = l
	return l, nil
}
