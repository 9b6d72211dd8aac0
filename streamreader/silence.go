package streamreader

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/dynamill/dynamill/streamreader/internal/leases"
)

// A worker may reach the lease table and not the stream. By its renewals it
// would keep, for ever, what others could do: after a while without an answer
// it gives the work back, and pauses, so that others come first. If nobody else
// is there, it is its own again after the pause.
const (
	// silentTerms without a page is how long a worker keeps a shard.
	silentTerms = 3
	// pauseTerms is how long a worker leaves alone what it has given back.
	pauseTerms = 6
	// callLeast is the least time that a call to the stream gets: a page is up
	// to 1 MB (API reference of DynamoDB Streams, GetRecords).
	callLeast = 5 * time.Second
)

// errUnanswered ends the reading of a shard that another worker may be able to read.
var errUnanswered = errors.New("the stream does not answer this worker")

// boundedStreams gives up calls that hang.
type boundedStreams struct {
	streams Streams
	most    time.Duration
}

var _ Streams = boundedStreams{}

// DescribeStream is that of Streams.
func (b boundedStreams) DescribeStream(ctx context.Context, in *dynamodbstreams.DescribeStreamInput, opts ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error) {
	ctx, cancel := context.WithTimeout(ctx, b.most)
	defer cancel()
	return b.streams.DescribeStream(ctx, in, opts...)
}

// GetShardIterator is that of Streams.
func (b boundedStreams) GetShardIterator(ctx context.Context, in *dynamodbstreams.GetShardIteratorInput, opts ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error) {
	ctx, cancel := context.WithTimeout(ctx, b.most)
	defer cancel()
	return b.streams.GetShardIterator(ctx, in, opts...)
}

// GetRecords is that of Streams.
func (b boundedStreams) GetRecords(ctx context.Context, in *dynamodbstreams.GetRecordsInput, opts ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error) {
	ctx, cancel := context.WithTimeout(ctx, b.most)
	defer cancel()
	return b.streams.GetRecords(ctx, in, opts...)
}

// answered notes what a page tells of the stream. It was waited for as long
// before the stream was asked: that is no silence.
func (s *shardReader) answered(p *page, waited time.Duration) {
	if !p.heard.IsZero() {
		s.answeredAt = p.heard
	}
	if p.err != nil {
		if !s.silentSince.IsZero() {
			s.silentSince = s.silentSince.Add(max(0, waited))
		}
		return
	}
	s.silentSince = time.Time{}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progress.answered = p.heard
}

// unanswered judges a call that failed and may succeed later. Others must not
// take the shard for empty meanwhile.
func (s *shardReader) unanswered(err error) (outcome, error) {
	s.forgetEmptyPolls()
	if s.silentSince.IsZero() {
		s.silentSince = time.Now()
	}
	if time.Since(s.silentSince) < silentTerms*s.cfg.LeaseTerm {
		return outcomeRetry, err
	}
	return outcomeFatal, fmt.Errorf("%w: %w", errUnanswered, err)
}

// silence is what a fleet's worker remembers of a stream that did not answer.
type silence struct {
	lists   time.Time // since when lists fail; zero if the last one did not
	standAt time.Time // when this worker may be the one that lists again
	shards  map[string]pausedShard
	since   time.Time // the last shard was given back; zero if one has answered since then
}

// pausedShard is one that was given back and that nobody else has taken.
type pausedShard struct {
	until  time.Time // when it may be taken again
	reader *shardReader
}

// failedList counts a list that failed, and reports whether it is time that another worker tries.
func (q *silence) failedList(term time.Duration) bool {
	if q.lists.IsZero() {
		q.lists = time.Now()
	}
	return time.Since(q.lists) >= term
}

// gaveBack notes a shard that did not answer.
func (q *silence) gaveBack(s *shardReader, term time.Duration) {
	q.since = time.Now()
	q.shards[s.info.id] = pausedShard{until: q.since.Add(pauseTerms * term), reader: s}
}

// resume lets the reader of a shard go on where its former one, since which
// nobody has written the shard's row, has given up: what that one knew shows
// for how long the shard was not read.
func (q *silence) resume(s *shardReader) {
	p, ok := q.shards[s.info.id]
	delete(q.shards, s.info.id)
	if !ok || s.held.Lease().Counter != p.reader.held.Lease().Counter+1 {
		return
	}
	s.ahead.resume(p.reader.ahead)
	s.first = p.reader.first
	s.reopened, s.answeredAt = p.reader.reopened, p.reader.answeredAt
	s.progress = p.reader.snapshot()
	s.progress.unsaved = false // it was saved when the shard was given up
}

// heard notes when a shard answered.
func (q *silence) heard(at time.Time) {
	if at.After(q.since) {
		q.since = time.Time{}
	}
}

// curb takes from a plan what this worker should leave alone. While no shard
// has answered it, it tries one, after the pause; which may be one of another worker.
func (q *silence) curb(plan *leases.Plan, in leases.Input, asked bool) {
	maps.DeleteFunc(q.shards, func(id string, _ pausedShard) bool {
		l, ok := in.Leases[id]
		return !ok || l.Finished() || l.Owner != "" && l.Owner != in.Worker
	})
	pausing := func(l Lease) bool { return in.Now.Before(q.shards[l.Shard].until) }
	plan.Take, plan.Ask = slices.DeleteFunc(plan.Take, pausing), slices.DeleteFunc(plan.Ask, pausing)
	switch {
	case q.since.IsZero():
	case asked, len(in.Busy) > 0, in.Now.Sub(q.since) < pauseTerms*in.Term:
		plan.Take, plan.Ask = nil, nil
	case len(plan.Take) > 0:
		plan.Take, plan.Ask = plan.Take[:1], nil
	default:
		plan.Ask = plan.Ask[:min(1, len(plan.Ask))]
	}
}
