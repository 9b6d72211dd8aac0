// Package streamreader is the stream's reader as a program sees it that follows a table: the client
// that the reader needs, and how far it is. dynamill.Config takes the one, dynamill.Status has the other.
//
// The reader itself is internal/streamreader. This package holds declarations alone, and imports the
// AWS SDK's client of DynamoDB Streams.
package streamreader

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
)

// Streams is what the reader needs of *dynamodbstreams.Client.
type Streams interface {
	DescribeStream(ctx context.Context, in *dynamodbstreams.DescribeStreamInput,
		opts ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error)
	GetShardIterator(ctx context.Context, in *dynamodbstreams.GetShardIteratorInput,
		opts ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error)
	GetRecords(ctx context.Context, in *dynamodbstreams.GetRecordsInput,
		opts ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error)
}

var _ Streams = (*dynamodbstreams.Client)(nil)

// Stats is the reader's state at one moment: of the shards that it reads
// itself, where nothing else is said.
type Stats struct {
	Records int64 // records done since the reader started
	Open    int   // shards that a goroutine reads now
	Waiting int   // shards of the stream that wait for their parent
	// Finished counts the stream's shards that are done to their end, by any worker.
	Finished int
	// Lag is the age of the newest record done in the shard that is furthest
	// behind; 0 when every shard is caught up, or nothing was read yet. While the
	// reader does not run it is that of the shards that it read when it was stopped.
	// DynamoDB floors the time of creation to the second.
	Lag time.Duration
	// OldestAge is the age of the oldest record that is not done, in the shard where it is
	// greatest; 0 when nothing waits. Between two pages, and while the stream does not answer,
	// it is an upper bound: the age of the newest record done.
	OldestAge time.Duration
	// CaughtUp reports whether every shard, by any worker, was read either to its end, as far
	// as several empty polls can tell, or past the moment at which reading
	// began: what the stream held before is done.
	CaughtUp bool
	// LastProgress is when the shard that has made no progress for the longest
	// time last did: a batch done, or a poll that found nothing. Without open
	// shards it is the time of the last list of shards; zero before the first.
	LastProgress time.Time
	// Shards are the stream's shards that are not finished, by id; none while
	// the reader does not run.
	Shards []ShardStats
	// Skipped are shards that are open, or were when this reader found them, although
	// their leases say SHARD_END, so that no worker reads them. Only a reader that lists the
	// stream's shards knows of them: one of those that share the stream, or one that drains.
	Skipped []string
	// LeaseMoves counts, since the reader started, the shards that this reader began to read
	// and those that it gave away or lost before their end.
	LeaseMoves int64
}

// ShardStats is how one shard that is not finished stands, as this reader sees
// it: its own shards as they are, others as their rows last said.
type ShardStats struct {
	ID      string
	Owner   string // the worker that reads it; "" for none, or for one that was not heard of for a lease's term
	Mine    bool   // this reader reads it
	Waiting bool   // for its parent: no worker may read it yet
	// Lag is the age of the newest record done; 0 if nothing waited at the last
	// poll, or nothing was read yet.
	Lag time.Duration
	// OldestAge is the age of the oldest record that is not done, as in Stats; 0 of a shard of another reader.
	OldestAge    time.Duration
	LastProgress time.Time // of a shard of this reader's own; else zero
}
