package lambdatest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"golang.org/x/sync/errgroup"
)

// Streams is what a Mapping needs of DynamoDB Streams; *dynamodbstreams.Client satisfies it.
type Streams interface {
	DescribeStream(context.Context, *dynamodbstreams.DescribeStreamInput,
		...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error)
	GetShardIterator(context.Context, *dynamodbstreams.GetShardIteratorInput,
		...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error)
	GetRecords(context.Context, *dynamodbstreams.GetRecordsInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error)
}

// Invoker is what a Mapping hands batches to; *Function satisfies it. Its error is a
// *FunctionError where the function failed; any other one ends the Mapping.
type Invoker interface {
	Invoke(ctx context.Context, payload []byte) ([]byte, error)
}

// Mapping is an event source mapping from a stream to a function, from the oldest
// record on. A shard is begun when its parent is finished, down to the last
// retry. Within a shard, records of one partition key are in one lane, and a lane
// has one batch at a time under way.
//
// The fields up to BisectBatch have the meaning of the API's CreateEventSourceMapping.
// They must not be changed once Run has been called. The zero value of every field
// in the second and third group stands for its default.
type Mapping struct {
	Streams      Streams
	StreamARN    string
	PartitionKey string // the attribute by which records are spread over lanes
	Function     Invoker

	BatchSize             int // default: 100
	ParallelizationFactor int // lanes of each shard; default: 1
	// RetriesMax is MaximumRetryAttempts; Forever (the API's -1) is without end. Default: 0.
	RetriesMax              int
	BisectBatch             bool // BisectBatchOnFunctionError
	ReportBatchItemFailures bool
	OnFailure               *Destination // default: what is discarded is gone

	PollInterval time.Duration // between two looks at a shard that had nothing new; default: 10 ms
	RetryPause   time.Duration // before a batch is tried again; default: 1 ms
	// Again says whether a batch that succeeded is delivered once more, as may happen
	// where delivery is at least once; called by several goroutines. Default: never.
	Again func() bool
	// Corrupt returns what is delivered instead of a record's JSON, or that JSON. It must be JSON, and the
	// same whenever the record comes again; called by several goroutines. Default: nothing is malformed.
	Corrupt func(r types.Record, text []byte) []byte
	// Attempted is told of every invocation; called by several goroutines.
	Attempted func(Attempt)

	once    sync.Once
	mu      sync.Mutex
	shards  map[string]*shard
	changed chan struct{} // closed and made anew when Settle may look again
	changes int           // records that were done or discarded
	ended   bool          // Run returned, with this error
	failed  error
}

// Forever is the RetriesMax with which nothing is ever discarded.
const Forever = -1

// Attempt is one invocation with a batch.
type Attempt struct {
	Shard   string
	Records []types.Record
	Retry   int            // how often the batch, or one that it was cut from, failed before
	Done    int            // records that need not come again
	Failed  *FunctionError // nil if the function answered
}

const (
	batchSizeDefault    = 100
	pollIntervalDefault = 10 * time.Millisecond
	retryPauseDefault   = time.Millisecond
	settledPolls        = 3 // that find nothing, of every shard, one after the other
)

func (m *Mapping) start() {
	m.once.Do(func() {
		m.BatchSize = orDefault(m.BatchSize, batchSizeDefault)
		m.ParallelizationFactor = orDefault(m.ParallelizationFactor, 1)
		m.PollInterval = orDefault(m.PollInterval, pollIntervalDefault)
		m.RetryPause = orDefault(m.RetryPause, retryPauseDefault)
		m.shards = map[string]*shard{}
		m.changed = make(chan struct{})
	})
}

func orDefault[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

// Run delivers records until ctx ends, which is no error. It is called once. Batches that are under
// way then are given up.
func (m *Mapping) Run(ctx context.Context) error {
	m.start()
	group, work := errgroup.WithContext(ctx)
	group.Go(func() error { return m.follow(work, group) })
	err := group.Wait()
	if ctx.Err() != nil {
		err = nil
	}
	m.note(func() { m.ended, m.failed = true, err })
	return err
}

// follow begins shards whose parents are finished, for as long as there may be any.
func (m *Mapping) follow(ctx context.Context, group *errgroup.Group) error {
	for ctx.Err() == nil {
		changed := m.watch()
		listed, err := m.list(ctx)
		if err != nil {
			return err
		}
		for _, s := range m.begin(listed) {
			group.Go(func() error { return s.run(ctx) })
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-time.After(m.PollInterval * listingPolls):
		}
	}
	return nil
}

const listingPolls = 50 // poll intervals between two listings, if nothing happens

// begin files the shards that may be begun now and returns them.
func (m *Mapping) begin(listed []types.Shard) (begun []*shard) {
	m.mu.Lock()
	defer m.mu.Unlock()
	there := map[string]bool{}
	for _, l := range listed {
		there[aws.ToString(l.ShardId)] = true
	}
	for _, l := range listed {
		id, parent := aws.ToString(l.ShardId), aws.ToString(l.ParentShardId)
		if m.shards[id] != nil {
			continue
		}
		if p := m.shards[parent]; there[parent] && (p == nil || !p.finished) {
			continue // a parent that is no longer listed is trimmed
		}
		s := &shard{Mapping: m, id: id}
		m.shards[id] = s
		begun = append(begun, s)
	}
	return begun
}

func (m *Mapping) list(ctx context.Context) (all []types.Shard, err error) {
	in := &dynamodbstreams.DescribeStreamInput{StreamArn: &m.StreamARN}
	for {
		out, err := m.Streams.DescribeStream(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("listing the shards of %s: %w", m.StreamARN, err)
		}
		all = append(all, out.StreamDescription.Shards...)
		if in.ExclusiveStartShardId = out.StreamDescription.LastEvaluatedShardId; in.ExclusiveStartShardId == nil {
			return all, nil
		}
	}
}

var errLeft = errors.New("records may be left to be delivered")

// Settle waits until all that was written before is delivered, and with it what
// the function wrote itself: until every record read is done or discarded, and a
// few looks at every shard have found nothing. It returns how many records were
// done or discarded meanwhile. No other writer may be at work. Run must be running;
// its end is an error.
func (m *Mapping) Settle(ctx context.Context) (records int, err error) {
	m.start()
	m.mu.Lock()
	before := m.changes
	for _, s := range m.shards {
		s.quiet = 0
	}
	m.mu.Unlock()
	for {
		changed := m.watch()
		m.mu.Lock()
		records = m.changes - before
		settled, ended, failed := m.settled(), m.ended, m.failed
		m.mu.Unlock()
		switch {
		case ended:
			return records, errors.Join(errLeft, failed)
		case settled:
			return records, nil
		}
		select {
		case <-ctx.Done():
			return records, errors.Join(errLeft, context.Cause(ctx))
		case <-changed:
		}
	}
}

// settled is asked under m.mu.
func (m *Mapping) settled() bool {
	open := 0
	for _, s := range m.shards {
		if s.finished {
			continue
		}
		open++
		if s.open > 0 || s.quiet < settledPolls {
			return false
		}
	}
	return open > 0 // a stream that is enabled has an open shard: it will be listed
}

// watch returns a channel that is closed at the next change of a shard.
func (m *Mapping) watch() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changed
}

// note changes something under m.mu and wakes the watchers.
func (m *Mapping) note(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
	close(m.changed)
	m.changed = make(chan struct{})
}
