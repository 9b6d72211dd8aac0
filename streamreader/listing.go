package streamreader

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// describeSpacing keeps DescribeStream at half of its 10 calls a second (API
// reference of DynamoDB Streams, DescribeStream): the other half is for a
// worker that drains, or is just elected, and for other tools.
const describeSpacing = 200 * time.Millisecond

// lister lists a stream's shards. It is used by one goroutine at a time.
type lister struct {
	streams    Streams
	arn        string
	keys       decoder // the key attributes, should the stream not name them
	lastCall   time.Time
	unfiltered bool // the endpoint does not know how to list children only
}

// listing is a stream as DescribeStream shows it.
type listing struct {
	decoder decoder
	status  streams.StreamStatus
	shards  []shardInfo
	pages   int
}

// listed is one page of a list, or its failure.
type listed struct {
	found    listing     // all pages up to this one
	page     []shardInfo // this one
	complete bool        // the list is of all shards, not of some shards' children
	last     bool
	took     time.Duration // of the last page: how long the list took
	err      error
}

// send lists the stream, or only the children of some shards, page by page.
// An endpoint that knows no children lists everything instead.
func (l *lister) send(ctx context.Context, parents []string, to chan<- listed) {
	began := time.Now()
	give := func(p listed) {
		p.took = time.Since(began)
		select {
		case to <- p:
		case <-ctx.Done():
		}
	}
	if len(parents) > 0 && !l.unfiltered {
		found, err := l.children(ctx, parents)
		if err != nil || !l.unfiltered {
			give(listed{found: found, page: found.shards, last: true, err: err})
			return
		}
	}
	found := listing{decoder: l.keys}
	in := &dynamodbstreams.DescribeStreamInput{StreamArn: &l.arn}
	for ctx.Err() == nil {
		before := len(found.shards)
		last, err := l.describe(ctx, in, &found)
		if err != nil {
			give(listed{err: err, complete: true, last: true})
			return
		}
		shown := found // the receiver's own: this one grows
		shown.shards = slices.Clone(found.shards)
		if !last {
			shown.shards = nil
		}
		give(listed{found: shown, page: slices.Clone(found.shards[before:]), complete: true, last: last})
		if last {
			return
		}
	}
}

// children lists the children of some shards.
func (l *lister) children(ctx context.Context, parents []string) (listing, error) {
	found := listing{decoder: l.keys}
	for _, parent := range parents {
		in := &dynamodbstreams.DescribeStreamInput{
			StreamArn:   &l.arn,
			ShardFilter: &streams.ShardFilter{Type: streams.ShardFilterTypeChildShards, ShardId: &parent},
		}
		for last := false; !last; {
			before := len(found.shards)
			var err error
			last, err = l.describe(ctx, in, &found)
			if err != nil && classify(err) == verdictGone {
				break // the parent, or the stream: a full list tells
			}
			l.unfiltered = err != nil && classify(err) == verdictFatal && ctx.Err() == nil
			for _, s := range found.shards[before:] {
				l.unfiltered = l.unfiltered || s.parent != parent
			}
			if l.unfiltered {
				return found, nil
			}
			if err != nil {
				return listing{}, err
			}
		}
	}
	return found, nil
}

// describe asks for the next page, adds it, and reports whether it is the last.
func (l *lister) describe(ctx context.Context, in *dynamodbstreams.DescribeStreamInput, found *listing) (last bool, err error) {
	if err := sleep(ctx, describeSpacing-time.Since(l.lastCall)); err != nil {
		return false, err
	}
	out, err := l.streams.DescribeStream(ctx, in)
	l.lastCall = time.Now()
	if err != nil {
		if classify(err) == verdictGone {
			return false, fmt.Errorf("describing stream %s: %w: %w", l.arn, ErrStreamNotFound, err)
		}
		return false, fmt.Errorf("describing stream %s: %w", l.arn, err)
	}
	d := out.StreamDescription
	if d == nil {
		return false, permanentf("stream %s: its description is empty", l.arn)
	}
	if err := found.add(l.arn, d); err != nil {
		return false, err
	}
	in.ExclusiveStartShardId = d.LastEvaluatedShardId
	return aws.ToString(d.LastEvaluatedShardId) == "", nil
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
	f.pages++
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
