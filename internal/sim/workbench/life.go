package workbench

import (
	"context"
	"sync"

	"github.com/dynamill/dynamill/internal/stream/leases"
	"github.com/dynamill/dynamill/internal/streamreader"
)

// ErrCrashed is what an engine meets whose process was made to die.
var ErrCrashed error = &crashError{}

type crashError struct{}

func (*crashError) Error() string { return "the process has died" }

// StopReading keeps the stream reader from trying again: a dead process does not.
func (*crashError) StopReading() bool { return true }

// life is that of the engine's process. It is safe for concurrent use.
type life struct {
	mu      sync.Mutex
	running bool // it is the engine that calls, not the application
	mortal  bool
	left    int // writes until its death
	dead    bool
}

var writes = map[string]bool{
	"PutItem": true, "UpdateItem": true, "DeleteItem": true, "TransactWriteItems": true, "BatchWriteItem": true,
}

var streamReads = map[string]bool{"DescribeStream": true, "GetShardIterator": true, "GetRecords": true}

// before is called before every call to DynamoDB. The stream answers the dead
// too, for its reader waits on such errors; what it reads has no effect.
func (l *life) before(op string, _ any) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.running || !l.mortal || streamReads[op] {
		return nil
	}
	if writes[op] {
		l.dead = l.dead || l.left == 0
		l.left--
	}
	if l.dead {
		return ErrCrashed
	}
	return nil
}

func (l *life) dieAfter(writes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mortal, l.left = true, writes
}

func (l *life) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running = true
}

// end reports whether the process has died, and makes place for another.
func (l *life) end() (died bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	died = l.dead
	l.running, l.mortal, l.left, l.dead = false, false, 0, false
	return died
}

func (l *life) isDead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}

// checkpoints loses what a dead process writes.
type checkpoints struct {
	streamreader.Checkpoints
	life *life
}

// Save writes the lease, if the process lives.
func (c *checkpoints) Save(ctx context.Context, lease leases.Lease) (leases.Lease, error) {
	if c.life.isDead() {
		return lease, nil
	}
	return c.Checkpoints.Save(ctx, lease)
}
