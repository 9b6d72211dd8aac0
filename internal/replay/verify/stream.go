package verify

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"golang.org/x/sync/errgroup"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/awscall"
	"github.com/dynamill/dynamill/internal/pace"
)

// StreamClient is what reading a stream needs; *dynamodbstreams.Client satisfies it.
type StreamClient interface {
	DescribeStream(context.Context, *dynamodbstreams.DescribeStreamInput,
		...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error)
	GetShardIterator(context.Context, *dynamodbstreams.GetShardIteratorInput,
		...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error)
	GetRecords(context.Context, *dynamodbstreams.GetRecordsInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error)
}

// Stream tells from the stream and its checkpoints which records are not
// applied yet. A shard without a checkpoint counts as not applied at all.
type Stream struct {
	Client                StreamClient
	ARN                   string
	PartitionKey, SortKey string // the table's key attributes
	// Checkpoints are by shard; nil if no reader keeps any.
	Checkpoints func(context.Context) (map[string]Checkpoint, error)
	// LagMax: records that are older count as applied; 0: none does. For
	// deployments that keep no checkpoints.
	LagMax time.Duration

	PollInterval time.Duration // between two looks at the end of a shard; default 250 ms

	blind atomic.Bool // there are no checkpoints at all
}

// Blind reports whether nothing tells, or ever will, what of the stream is applied.
func (s *Stream) Blind() bool { return s.blind.Load() && s.LagMax == 0 }

const (
	// emptyPollsMax is after how many empty pages in a row the end of an open
	// shard is taken to be reached: GetRecords may give an empty page before it
	// (API reference of DynamoDB Streams).
	emptyPollsMax   = 3
	reopensMax      = 3 // times that a shard is opened at its oldest record because that was trimmed meanwhile
	shardsAtOnce    = 8
	pollDefault     = 250 * time.Millisecond // a shard may be read five times a second
	streamRetryTime = time.Minute
)

// Applied reads the checkpoints.
func (s *Stream) Applied(ctx context.Context) (Applied, error) {
	now := Applied{At: time.Now()}
	var err error
	if now.Shards, err = s.Checkpoints(ctx); err != nil {
		return now, fmt.Errorf("reading how far the stream is applied: %w", err)
	}
	s.blind.Store(now.Shards == nil)
	return now, nil
}

// Unapplied reads every shard from its checkpoint of then to its end of now.
func (s *Stream) Unapplied(ctx context.Context, then Applied, f func(*change.Record) error) error {
	label, shards, err := s.shards(ctx)
	if err != nil {
		return fmt.Errorf("listing the shards of the stream: %w", err)
	}
	var mu sync.Mutex
	locked := func(rec *change.Record) error {
		mu.Lock()
		defer mu.Unlock()
		if s.LagMax > 0 && !rec.Created.IsZero() && then.At.Sub(rec.Created) > s.LagMax {
			return nil
		}
		return f(rec)
	}
	decoder := attributes.RecordDecoder{Label: label, Partition: s.PartitionKey, Sort: s.SortKey}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(shardsAtOnce)
	for _, shard := range shards {
		if checkpoint := then.Shards[shard]; !checkpoint.Done {
			g.Go(func() error { return s.shard(ctx, decoder, shard, checkpoint.After, locked) })
		}
	}
	return g.Wait()
}

// shards lists the stream.
func (s *Stream) shards(ctx context.Context) (label string, ids []string, err error) {
	in := &dynamodbstreams.DescribeStreamInput{StreamArn: &s.ARN}
	for {
		out, err := persist(ctx, func() (*dynamodbstreams.DescribeStreamOutput, error) { return s.Client.DescribeStream(ctx, in) })
		if err != nil {
			return "", nil, err
		}
		d := out.StreamDescription
		label = aws.ToString(d.StreamLabel)
		for _, shard := range d.Shards {
			ids = append(ids, aws.ToString(shard.ShardId))
		}
		if in.ExclusiveStartShardId = d.LastEvaluatedShardId; aws.ToString(d.LastEvaluatedShardId) == "" {
			return label, ids, nil
		}
	}
}

// shard reads one shard behind a sequence number, or, where that is trimmed, all that is left of it.
func (s *Stream) shard(ctx context.Context, decoder attributes.RecordDecoder, id, after string, f func(*change.Record) error) error {
	iterator, err := s.open(ctx, id, after)
	if err != nil || iterator == nil {
		return err
	}
	for empty, reopened := 0, 0; iterator != nil && empty < emptyPollsMax; {
		out, err := persist(ctx, func() (*dynamodbstreams.GetRecordsOutput, error) {
			return s.Client.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: iterator})
		})
		if trimmed := new(streams.TrimmedDataAccessException); errors.As(err, &trimmed) && after != "" {
			return s.shard(ctx, decoder, id, "", f)
		} else if errors.As(err, &trimmed) && reopened < reopensMax {
			// The oldest record went after the iterator for it was taken.
			reopened++
			if iterator, err = s.open(ctx, id, ""); err != nil {
				return err
			}
			continue
		}
		if expired := new(streams.ExpiredIteratorException); errors.As(err, &expired) { // this process was suspended for a while
			return s.shard(ctx, decoder, id, after, f)
		}
		if err != nil {
			return fmt.Errorf("reading shard %s: %w", id, err)
		}
		for i := range out.Records {
			record, err := decoder.Decode(&out.Records[i])
			if err != nil {
				return fmt.Errorf("a record of the stream: %w", err)
			}
			if err := f(&record); err != nil {
				return err
			}
			after = *out.Records[i].Dynamodb.SequenceNumber
		}
		if iterator = out.NextShardIterator; len(out.Records) > 0 {
			empty = 0
			continue
		}
		interval := s.PollInterval
		if interval <= 0 {
			interval = pollDefault
		}
		if empty++; iterator != nil && empty < emptyPollsMax {
			if pace.Sleep(ctx, interval) != nil {
				return ctx.Err()
			}
		}
	}
	return nil
}

// open returns an iterator; nil for a shard that is gone.
func (s *Stream) open(ctx context.Context, id, after string) (*string, error) {
	in := &dynamodbstreams.GetShardIteratorInput{StreamArn: &s.ARN, ShardId: &id, ShardIteratorType: streams.ShardIteratorTypeTrimHorizon}
	if after != "" {
		in.ShardIteratorType, in.SequenceNumber = streams.ShardIteratorTypeAfterSequenceNumber, &after
	}
	out, err := persist(ctx, func() (*dynamodbstreams.GetShardIteratorOutput, error) { return s.Client.GetShardIterator(ctx, in) })
	if trimmed := new(streams.TrimmedDataAccessException); errors.As(err, &trimmed) && after != "" {
		return s.open(ctx, id, "")
	}
	if gone := new(streams.ResourceNotFoundException); errors.As(err, &gone) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("opening shard %s: %w", id, err)
	}
	return out.ShardIterator, nil
}

// persist sends a call again that was refused for a reason that passes.
func persist[T any](ctx context.Context, call func() (T, error)) (T, error) {
	return awscall.Persist(ctx, streamRetryTime, call)
}
