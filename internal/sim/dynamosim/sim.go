// Package dynamosim is a simulated DynamoDB with streams: in memory, for tests
// and demonstrations only. A Sim has the same methods as the AWS SDK's
// dynamodb and dynamodbstreams clients, so that it stands in for both behind
// any interface made for them. Everything it does is decided by its Options
// and the calls made: the same calls give the same replies.
//
// It keeps the promise of section 8 of the design: conditions, transactions,
// sizes, capacity and errors as AWS documents them, held to by the conformance
// suite; and a stream at its most awkward, with sequence numbers that rise
// numerically only, shards that split, roll over, are trimmed and vanish, and
// iterators that expire. It may import the AWS SDK's types, internal/decimal
// and its own subpackages.
//
// What it refuses with a ValidationException although AWS has it: queries and
// scans of indexes (writes are held to the types and sizes of their keys), changes of indexes
// and replicas by UpdateTable, and the legacy parameters from before
// expressions (Expected, AttributeUpdates, KeyConditions, ...). It has no
// throughput limits of its own: throttling, lost replies and conflicts are for
// the hooks and for Hold.
package dynamosim

import (
	"context"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// Options configure a Sim. The zero Options are usable.
type Options struct {
	// Now is the clock; time.Now if nil. It decides over stream retention (24 hours), iterators (15
	// minutes), tokens (10 minutes), time to live and the dates in replies.
	Now func() time.Time
	// Seed varies what AWS leaves open: steps of sequence numbers, shard ids, the order of scans.
	Seed uint64
	// Shards is how many open shards a new stream has; 1 if 0.
	Shards int
	// ScatterCollections spreads the items of one partition key over shards, as DynamoDB may where it has
	// split a collection: order is then kept for each item only, which is all that AWS promises.
	ScatterCollections bool
	// Before is called before each operation, without any lock held, with the operation's name and input;
	// an error fails the call before it has any effect.
	Before func(op string, input any) error
	// After is called after each operation, whether it succeeded or not; an error replaces the reply,
	// while the effect stays.
	After func(op string, input any) error
	// BatchBound tells how many of the n keys or requests of a BatchGetItem or BatchWriteItem are worked
	// off; the rest comes back unprocessed. All if nil. It is called with the lock held.
	BatchBound func(op string, n int) int
	// Stale tells whether a read that does not ask for consistency (GetItem, BatchGetItem, Query or Scan)
	// sees each item as it was before its last change. Never if nil. It is called with the lock held. A
	// stale Query or Scan does not bring back deleted items.
	Stale func(op string) bool
	// Changed is told of each change of an item, in their order, as it was and as it is: nil is for an item that is not there.
	// streamed says that the table's stream tells of the change, too. It is called with the lock held.
	Changed func(table string, before, after map[string]types.AttributeValue, streamed bool)
}

// Sim is a simulated DynamoDB, safe for concurrent use. Make one with New.
type Sim struct {
	options    Options
	mu         sync.Mutex
	random     *rand.Rand
	tables     map[string]*table
	streams    []*stream // all that were ever enabled and are not past retention, oldest first
	tokens     map[string]token
	tokenQueue []string       // oldest first
	held       map[string]int // items that another transaction holds
	usage      Usage
}

// New makes an empty Sim.
func New(options Options) *Sim {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Shards <= 0 {
		options.Shards = 1
	}
	return &Sim{
		options: options,
		random:  rand.New(rand.NewPCG(options.Seed, 0x64796e616d696c6c)),
		tables:  map[string]*table{},
		tokens:  map[string]token{},
		held:    map[string]int{},
		usage:   newUsage(),
	}
}

// call runs one operation between the hooks and under the lock, counts it, and
// dresses its error as the SDK does.
func call[I, O any](ctx context.Context, s *Sim, service, op string, in *I, f func(*I) (*O, error)) (*O, error) {
	if in == nil {
		in = new(I)
	}
	out, err := func() (*O, error) {
		if err := ctx.Err(); err != nil {
			return nil, &aws.RequestCanceledError{Err: err}
		}
		if s.options.Before != nil {
			if err := s.options.Before(op, in); err != nil {
				return nil, err
			}
		}
		out, err := locked(s, op, in, f)
		if s.options.After != nil {
			if err := s.options.After(op, in); err != nil {
				return nil, err
			}
		}
		return out, err
	}()
	if err != nil {
		return nil, &smithy.OperationError{ServiceID: service, OperationName: op, Err: err}
	}
	return out, nil
}

func locked[I, O any](s *Sim, op string, in *I, f func(*I) (*O, error)) (*O, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.usage.Requests[op]++
	s.forgetOld()
	return f(in)
}

const (
	tableService  = "DynamoDB"
	streamService = "DynamoDB Streams"
)

// hash spreads texts evenly and depends on the seed only.
func (s *Sim) hash(texts ...string) uint64 {
	h := fnv.New64a()
	for _, text := range texts {
		h.Write([]byte(text))
		h.Write([]byte{0})
	}
	// FNV's high bits move little for short texts; shards split by the high bits.
	x := h.Sum64() ^ s.options.Seed
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
