package streamreader

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/cenkalti/backoff/v4"
)

// Streams is what the reader needs of *dynamodbstreams.Client.
type Streams interface {
	DescribeStream(ctx context.Context, in *dynamodbstreams.DescribeStreamInput, opts ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error)
	GetShardIterator(ctx context.Context, in *dynamodbstreams.GetShardIteratorInput, opts ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error)
	GetRecords(ctx context.Context, in *dynamodbstreams.GetRecordsInput, opts ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error)
}

var _ Streams = (*dynamodbstreams.Client)(nil)

// describeSpacing keeps DescribeStream below its 10 calls a second (API
// reference of DynamoDB Streams, DescribeStream), with room for other tools.
const describeSpacing = 150 * time.Millisecond

// lister lists a stream's shards. It is used by one goroutine.
type lister struct {
	streams  Streams
	arn      string
	keys     decoder // the key attributes, should the stream not name them
	lastCall time.Time
}

// listing is a stream as DescribeStream shows it, all pages together.
type listing struct {
	decoder decoder
	status  streams.StreamStatus
	shards  []shardInfo
}

// list reads every page.
func (l *lister) list(ctx context.Context) (listing, error) {
	found := listing{decoder: l.keys}
	in := &dynamodbstreams.DescribeStreamInput{StreamArn: &l.arn}
	for {
		if err := sleep(ctx, describeSpacing-time.Since(l.lastCall)); err != nil {
			return listing{}, err
		}
		out, err := l.streams.DescribeStream(ctx, in)
		l.lastCall = time.Now()
		if err != nil {
			if classify(err) == verdictGone {
				return listing{}, fmt.Errorf("describing stream %s: %w: %w", l.arn, ErrStreamNotFound, err)
			}
			return listing{}, fmt.Errorf("describing stream %s: %w", l.arn, err)
		}
		d := out.StreamDescription
		if d == nil {
			return listing{}, permanentf("stream %s: its description is empty", l.arn)
		}
		if err := found.add(l.arn, d); err != nil {
			return listing{}, err
		}
		if aws.ToString(d.LastEvaluatedShardId) == "" {
			return found, nil
		}
		in.ExclusiveStartShardId = d.LastEvaluatedShardId
	}
}

func (f *listing) add(arn string, d *streams.StreamDescription) error {
	if d.StreamViewType != "" && d.StreamViewType != streams.StreamViewTypeNewAndOldImages {
		return permanentf("stream %s carries %s: old and new images are needed (%s)",
			arn, d.StreamViewType, streams.StreamViewTypeNewAndOldImages)
	}
	f.decoder.label = aws.ToString(d.StreamLabel)
	if len(d.KeySchema) > 0 {
		f.decoder.partition, f.decoder.sortName = "", ""
	}
	for _, k := range d.KeySchema {
		switch k.KeyType {
		case streams.KeyTypeHash:
			f.decoder.partition = aws.ToString(k.AttributeName)
		case streams.KeyTypeRange:
			f.decoder.sortName = aws.ToString(k.AttributeName)
		}
	}
	if f.decoder.label == "" || f.decoder.partition == "" {
		return permanentf("stream %s: its description names no label or no partition key (label %q, partition key %q)", arn, f.decoder.label, f.decoder.partition)
	}
	f.status = d.StreamStatus
	for _, s := range d.Shards {
		info := shardInfo{id: aws.ToString(s.ShardId), parent: aws.ToString(s.ParentShardId)}
		if r := s.SequenceNumberRange; r != nil {
			info.start = aws.ToString(r.StartingSequenceNumber)
			info.closed = aws.ToString(r.EndingSequenceNumber) != ""
		}
		f.shards = append(f.shards, info)
	}
	return nil
}

// newBackoff waits 100 ms at first and 20 s at last, half of it at random.
func newBackoff() *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(100*time.Millisecond),
		backoff.WithMultiplier(2),
		backoff.WithMaxInterval(20*time.Second),
		backoff.WithMaxElapsedTime(0))
}

// sleep waits, or returns the context's cause if that ends first.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
