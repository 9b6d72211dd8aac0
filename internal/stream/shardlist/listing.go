package shardlist

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/dynamill/dynamill/internal/pace"
	"github.com/dynamill/dynamill/internal/stream/streamapi"

	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// describeSpacing keeps DescribeStream at half of its 10 calls a second (API reference of DynamoDB Streams), of which
// other workers and tools need some.
const describeSpacing = 200 * time.Millisecond

// Lister lists a stream's shards. It is used by one goroutine at a time.
type Lister struct {
	Streams    streamapi.Streams
	Arn        string
	Keys       streamapi.Decoder // the key attributes, should the stream not name them
	lastCall   time.Time
	unfiltered bool // the endpoint does not know how to list children only
}

// Listing is a stream as DescribeStream shows it.
type Listing struct {
	Decoder streamapi.Decoder
	Status  streams.StreamStatus
	Shards  []streamapi.Shard
	Pages   int
}

// Page is one page of a list, or its failure.
type Page struct {
	Found    Listing           // all pages up to this one
	Page     []streamapi.Shard // this one
	Complete bool              // the list is of all shards, not of some shards' children
	Last     bool
	Took     time.Duration // of the last page: how long the list took
	Err      error
}

// Send lists the stream, or only the children of some shards, page by page.
// An endpoint that knows no children lists everything instead.
func (l *Lister) Send(ctx context.Context, parents []string, to chan<- Page) {
	began := time.Now()
	give := func(p Page) {
		p.Took = time.Since(began)
		select {
		case to <- p:
		case <-ctx.Done():
		}
	}
	if len(parents) > 0 && !l.unfiltered {
		found, err := l.children(ctx, parents)
		if err != nil || !l.unfiltered {
			give(Page{Found: found, Page: found.Shards, Last: true, Err: err})
			return
		}
	}
	found := Listing{Decoder: l.Keys}
	in := &dynamodbstreams.DescribeStreamInput{StreamArn: &l.Arn}
	for ctx.Err() == nil {
		before := len(found.Shards)
		last, err := l.Describe(ctx, in, &found)
		if err != nil {
			give(Page{Err: err, Complete: true, Last: true})
			return
		}
		shown := found
		if !last {
			shown.Shards = nil // it still grows
		}
		give(Page{Found: shown, Page: found.Shards[before:], Complete: true, Last: last})
		if last {
			return
		}
	}
}

func (l *Lister) children(ctx context.Context, parents []string) (Listing, error) {
	found := Listing{Decoder: l.Keys}
	for _, parent := range parents {
		in := &dynamodbstreams.DescribeStreamInput{
			StreamArn:   &l.Arn,
			ShardFilter: &streams.ShardFilter{Type: streams.ShardFilterTypeChildShards, ShardId: &parent},
		}
		for last := false; !last; {
			before := len(found.Shards)
			var err error
			last, err = l.Describe(ctx, in, &found)
			if err != nil && streamapi.Classify(err) == streamapi.VerdictGone {
				break // the parent, or the stream: a full list shows which
			}
			l.unfiltered = err != nil && streamapi.Classify(err) == streamapi.VerdictFatal && ctx.Err() == nil
			for _, s := range found.Shards[before:] {
				l.unfiltered = l.unfiltered || s.Parent != parent
			}
			if l.unfiltered {
				return found, nil
			}
			if err != nil {
				return Listing{}, err
			}
		}
	}
	return found, nil
}

// List lists the whole stream at once.
func (l *Lister) List(ctx context.Context) (Listing, error) {
	found := Listing{Decoder: l.Keys}
	in := &dynamodbstreams.DescribeStreamInput{StreamArn: &l.Arn}
	for {
		if last, err := l.Describe(ctx, in, &found); err != nil || last {
			return found, err
		}
	}
}

// Describe asks for the next page, adds it, and reports whether it is the last.
func (l *Lister) Describe(ctx context.Context, in *dynamodbstreams.DescribeStreamInput, found *Listing) (last bool, err error) {
	if err := pace.Sleep(ctx, describeSpacing-time.Since(l.lastCall)); err != nil {
		return false, err
	}
	out, err := l.Streams.DescribeStream(ctx, in)
	l.lastCall = time.Now()
	if err != nil {
		if streamapi.Classify(err) == streamapi.VerdictGone {
			return false, fmt.Errorf("describing stream %s: %w: %w", l.Arn, streamapi.ErrStreamNotFound, err)
		}
		return false, fmt.Errorf("describing stream %s: %w", l.Arn, err)
	}
	d := out.StreamDescription
	if d == nil {
		return false, streamapi.Permanentf("stream %s: its description is empty", l.Arn)
	}
	if err := found.add(l.Arn, d); err != nil {
		return false, err
	}
	in.ExclusiveStartShardId = d.LastEvaluatedShardId
	return aws.ToString(d.LastEvaluatedShardId) == "", nil
}

func (f *Listing) add(arn string, d *streams.StreamDescription) error {
	if d.StreamViewType != "" && d.StreamViewType != streams.StreamViewTypeNewAndOldImages {
		return streamapi.Permanentf("stream %s carries %s: old and new images are needed (%s)",
			arn, d.StreamViewType, streams.StreamViewTypeNewAndOldImages)
	}
	f.Decoder.Label = aws.ToString(d.StreamLabel)
	if len(d.KeySchema) > 0 {
		f.Decoder.PartitionKey, f.Decoder.SortKey = "", ""
	}
	for _, k := range d.KeySchema {
		switch k.KeyType {
		case streams.KeyTypeHash:
			f.Decoder.PartitionKey = aws.ToString(k.AttributeName)
		case streams.KeyTypeRange:
			f.Decoder.SortKey = aws.ToString(k.AttributeName)
		}
	}
	if f.Decoder.Label == "" || f.Decoder.PartitionKey == "" {
		return streamapi.Permanentf("stream %s: its description names no label or no partition key (label %q, partition key %q)", arn,
			f.Decoder.Label, f.Decoder.PartitionKey)
	}
	f.Status = d.StreamStatus
	f.Pages++
	for _, s := range d.Shards {
		info := streamapi.Shard{ID: aws.ToString(s.ShardId), Parent: aws.ToString(s.ParentShardId)}
		if r := s.SequenceNumberRange; r != nil {
			info.Start = aws.ToString(r.StartingSequenceNumber)
			info.End = aws.ToString(r.EndingSequenceNumber)
			info.Closed = info.End != ""
		}
		f.Shards = append(f.Shards, info)
	}
	return nil
}
