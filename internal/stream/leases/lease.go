// Package leases says which worker reads which shard of a stream: the rows and their table, the pure plan that
// divides the shards between workers, and how long an owner may act. It knows nothing of streams and their records.
package leases

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"
)

// The sentinels of a checkpoint, as the Kinesis Client Library names them.
// Every other checkpoint is the sequence number of the last record done.
const (
	TrimHorizon = "TRIM_HORIZON" // nothing of the shard is done
	ShardEnd    = "SHARD_END"    // the shard is closed and everything in it is done
	Latest      = "LATEST"       // of a stream's own row only: all shards that the stream had at first have rows
)

// Lease is one row of the lease table: how far one shard is done, and by which owner. The owner of the stream's own row
// lists the shards and makes and deletes their rows. A worker that has less than its share owns a seeker's row.
type Lease struct {
	Shard      string        // of a stream's own row: the stream's ARN; of a seeker's: SeekerKey
	Stream     string        // ARN of the stream that the shard belongs to
	Owner      string        // the worker that reads the shard; "" if none does
	Run        string        // which process of that name it is, drawn anew by each; "" until it has claimed the row
	Term       time.Duration // how long the owner may write nothing before the lease expires; 0 if unknown
	Counter    int64         // raised by every write to the row, but for those of Adopt and Announce
	Checkpoint string        // TrimHorizon, a sequence number, or ShardEnd
	Switches   int64         // changes of owner since the last checkpoint; a process that comes back under its name counts
	Parent     string        // "" if the shard has none
	Children   []string
	// Whole says that the shard held its first record when it was found, so that nothing of it may go missing afterwards.
	Whole bool
	// Start is the sequence number of the shard's first record; "" if unknown.
	Start string
	// Orphan says that the stream had dropped the parent when this shard was first listed, so no worker waits for the parent.
	Orphan bool
	// EmptyPolls is how often in a row the owner found nothing in the open shard, as of its last write.
	EmptyPolls int64
	// Newest is when the newest record done was created, in whole seconds, as of the last write; zero if none was.
	Newest time.Time
	// Unadopted says that another program made the row: Whole, Start and Orphan are unknown until Adopt writes them.
	Unadopted bool
	// Of a stream's own row only: its label, and the table's key attributes.
	Label, PartitionKey, SortKey string
	// News, of a stream's own row only, is raised by Announce.
	News int64
}

// Worker names the process that claims leases.
type Worker struct {
	Name string
	Run  string // differs between processes of the same name
	Term time.Duration
}

// CallsMax is how many calls one worker makes at the same time: to the lease table, or to a
// stream for its shards' starts.
const CallsMax = 16

// InTime bounds a call to the lease table that other work waits
// for. Without a bound, a connection whose other end is gone may hang for a quarter of an hour.
func (w Worker) InTime(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, w.Term/RenewalsPerTerm)
}

// Finished reports whether everything in the shard is done.
func (l Lease) Finished() bool { return l.Checkpoint == ShardEnd }

// OfStream reports whether this is a stream's own row.
func (l Lease) OfStream() bool { return l.Shard == l.Stream && l.Stream != "" }

// OfSeeker reports whether this is the row of a worker that has less than its share.
func (l Lease) OfSeeker() bool {
	return l.Stream != "" && strings.HasPrefix(l.Shard, SeekerKey(l.Stream, ""))
}

// OfShard reports whether this is the row of a shard.
func (l Lease) OfShard() bool { return !l.OfStream() && !l.OfSeeker() }

// SeekerKey is the key of the row by which a worker shows that it has less than its share of a stream's shards.
func SeekerKey(streamARN, worker string) string { return streamARN + "/seeker/" + worker }

// Store keeps the leases. It is safe for concurrent use. Claim, Renew, Save, Release and Delete write only to a row whose
// counter and owner are as in the lease; otherwise they return ErrLost and the row in force, if there is one: an
// ErrNamesake if another process has claimed it under the owner's name.
type Store interface {
	// Load returns every row, consistently, those of other streams of the table too.
	Load(ctx context.Context) ([]Lease, error)
	// Get returns one row, consistently; the zero Lease if there is none.
	Get(ctx context.Context, shard string) (Lease, error)
	// Create adds a row if the shard has none, and returns the row in force.
	Create(ctx context.Context, lease Lease) (Lease, error)
	// Claim makes worker the row's owner. Whatever the counter, it also succeeds if this process is the owner, or a
	// process of its name had the row when it was read.
	Claim(ctx context.Context, lease Lease, worker Worker) (Lease, error)
	// Adopt writes what the lease says of its shard into a row that is Unadopted.
	Adopt(ctx context.Context, lease Lease) (Lease, error)
	// Renew raises the counter, and writes Term, EmptyPolls and Newest.
	Renew(ctx context.Context, lease Lease) (Lease, error)
	// Save is Renew that also writes Checkpoint and Children, and what belongs to a stream's own row.
	Save(ctx context.Context, lease Lease) (Lease, error)
	// Release writes the lease's Checkpoint and, by the same write, clears the owner.
	Release(ctx context.Context, lease Lease) (Lease, error)
	// Evict clears the owner of a lease of which that owner has written nothing since it was read. It leaves the checkpoint as it is.
	Evict(ctx context.Context, lease Lease) (Lease, error)
	// Announce raises the News of a stream's own row, if there is one, so that its readers scan all rows.
	Announce(ctx context.Context, streamARN string) error
	// Delete removes one row.
	Delete(ctx context.Context, lease Lease) error
}

// What follows says how each write changes a row.

func (l Lease) claimedBy(worker Worker) Lease {
	if l.Owner != worker.Name || l.Run != "" && l.Run != worker.Run {
		l.Switches++
	}
	l.Owner, l.Run, l.Term, l.EmptyPolls = worker.Name, worker.Run, worker.Term, 0
	l.Counter++
	return l
}

func (l Lease) renewed(by Lease) Lease {
	l.Term, l.EmptyPolls, l.Newest = by.Term, by.EmptyPolls, by.Newest
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
	l = l.saved(by)
	l.Owner, l.Run, l.Term, l.EmptyPolls = "", "", 0, 0
	return l
}

// evicted leaves the checkpoint, which a person may have corrected, and the changes of owner, which tell of crashes.
func (l Lease) evicted() Lease {
	l.Owner, l.Run, l.Term, l.EmptyPolls = "", "", 0, 0
	l.Counter++
	return l
}

// CompareShards orders rows by their shards.
func CompareShards(a, b Lease) int { return cmp.Compare(a.Shard, b.Shard) }

// holds reports whether the row in force is still the one that l was read from.
func (l Lease) holds(row Lease) bool { return row.Counter == l.Counter && row.Owner == l.Owner }

// lostTo says what it means that the row in force is another than l was.
func (l Lease) lostTo(row Lease) error {
	if row.Owner != "" && row.Owner == l.Owner && row.Run != l.Run {
		return fmt.Errorf("%w: %q", ErrNamesake, l.Owner)
	}
	if row.Owner == "" && l.Owner != "" {
		return ErrEvicted
	}
	return ErrLost
}

// mayClaim reports whether the row in force, written since it was read, is still this process's: the name alone does not say so.
func (w Worker) mayClaim(row, read Lease) bool {
	return row.Owner == w.Name && (row.Run == w.Run || read.mine(row))
}
