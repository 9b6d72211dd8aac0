// Package streamapi calls DynamoDB Streams: it bounds the time of a call, opens shards, decodes records, says what a failed
// call means, and how long to wait. It imports change, internal/attributes, the leases' errors and the client for streams.
package streamapi

import (
	"context"
	"time"

	"github.com/dynamill/dynamill/streamreader"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
)

// Streams is what a reader needs of *dynamodbstreams.Client.
type Streams = streamreader.Streams

// CallLeast is the least time that a call to the stream gets: a page is up
// to 1 MB (API reference of DynamoDB Streams, GetRecords).
const CallLeast = 5 * time.Second

// Bound returns streams whose calls are given up after a time.
func Bound(calls Streams, most time.Duration) Streams { return boundedStreams{calls, most} }

// boundedStreams gives up calls that hang.
type boundedStreams struct {
	streams Streams
	most    time.Duration
}

var _ Streams = boundedStreams{}

// DescribeStream is that of Streams.
func (b boundedStreams) DescribeStream(ctx context.Context, in *dynamodbstreams.DescribeStreamInput,
	opts ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error) {
	ctx, cancel := context.WithTimeout(ctx, b.most)
	defer cancel()
	return b.streams.DescribeStream(ctx, in, opts...)
}

// GetShardIterator is that of Streams.
func (b boundedStreams) GetShardIterator(ctx context.Context, in *dynamodbstreams.GetShardIteratorInput,
	opts ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error) {
	ctx, cancel := context.WithTimeout(ctx, b.most)
	defer cancel()
	return b.streams.GetShardIterator(ctx, in, opts...)
}

// GetRecords is that of Streams.
func (b boundedStreams) GetRecords(ctx context.Context, in *dynamodbstreams.GetRecordsInput,
	opts ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error) {
	ctx, cancel := context.WithTimeout(ctx, b.most)
	defer cancel()
	return b.streams.GetRecords(ctx, in, opts...)
}
