package streamapi

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/dynamill/dynamill/internal/pace"
)

const (
	// PageBytesMax is the most bytes that GetRecords returns (API reference of
	// DynamoDB Streams, GetRecords).
	PageBytesMax = 1 << 20
	// RecordsPageMax is the most records that it returns (the same place).
	RecordsPageMax = 1000
)

// Shard is one shard as the stream lists it.
type Shard struct {
	ID, Parent string // parent is "" if the shard has none
	Start      string // sequence number of its first record; "" if unknown
	End        string // sequence number behind which it holds none; "" if it is open, or that is unknown
	Closed     bool   // nothing will be added to it
}

// Place is where in a shard its reading begins.
type Place struct {
	After string // the last record done; "" if none is
	At    string // the first record that is not, if it was seen
	Whole bool   // the shard held its first record when it was found
}

// Tail is the part of a shard behind a place. To read it takes no lease.
type Tail struct {
	Streams   Streams
	StreamARN string
	Shard     Shard
	// EmptyPolls is after how many empty pages in a row the end of an open shard counts as
	// reached: GetRecords may return an empty page before it (the same place). DynamoDB marks the last page of a closed shard. Some
	// emulators do not: then its end counts as reached after closedPollsFactor times as many.
	EmptyPolls int
	Spacing    time.Duration // between an empty page and the next one
	// Until ends the reading behind a page with a record that was made later: a busy shard gives no empty pages. Zero: it does not.
	Until time.Time
}

const closedPollsFactor = 4

// Read gives f each page behind a place, until the shard ends or f returns an error. last says
// that the shard ends with the page.
func (t Tail) Read(ctx context.Context, from Place, f func(page []streams.Record, last bool) error) error {
	iterator, err := OpenShard(ctx, t.Streams, t.StreamARN, t.Shard, from)
	if err != nil {
		return err
	}
	emptyMax := t.EmptyPolls
	if t.Shard.Closed {
		emptyMax *= closedPollsFactor
	}
	for empty := 0; ; {
		out, err := t.Streams.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: iterator, Limit: aws.Int32(RecordsPageMax)})
		if err != nil {
			return fmt.Errorf("reading shard %s: %w", t.Shard.ID, err)
		}
		iterator = out.NextShardIterator
		if err := f(out.Records, iterator == nil); err != nil {
			return err
		}
		if empty++; len(out.Records) > 0 {
			empty = 0
		}
		if iterator == nil || empty == emptyMax || t.isPast(out.Records) {
			return nil
		}
		if empty > 0 && pace.Sleep(ctx, t.Spacing) != nil {
			return context.Cause(ctx)
		}
	}
}

// isPast reports whether a page ends with a record that was made later than Until.
func (t Tail) isPast(page []streams.Record) bool {
	if t.Until.IsZero() || len(page) == 0 || page[len(page)-1].Dynamodb == nil {
		return false
	}
	return aws.ToTime(page[len(page)-1].Dynamodb.ApproximateCreationDateTime).After(t.Until)
}

// OpenShard returns an iterator at a place. TRIM_HORIZON skips trimmed records without a word; so if the shard was
// whole when it was found, OpenShard then asks whether its first record is still there.
func OpenShard(ctx context.Context, calls Streams, streamARN string, shard Shard, from Place) (*string, error) {
	in := &dynamodbstreams.GetShardIteratorInput{
		StreamArn:         &streamARN,
		ShardId:           &shard.ID,
		ShardIteratorType: streams.ShardIteratorTypeTrimHorizon,
	}
	switch {
	case from.After != "":
		in.ShardIteratorType = streams.ShardIteratorTypeAfterSequenceNumber
		in.SequenceNumber = &from.After
	case from.At != "":
		in.ShardIteratorType = streams.ShardIteratorTypeAtSequenceNumber
		in.SequenceNumber = &from.At
	}
	out, err := calls.GetShardIterator(ctx, in)
	if err != nil {
		return nil, fmt.Errorf("opening shard %s: %w", shard.ID, err)
	}
	if out.ShardIterator == nil {
		return nil, Permanentf("opening shard %s: the stream gave no iterator", shard.ID)
	}
	if in.SequenceNumber == nil && from.Whole {
		if _, err := HoldsStart(ctx, calls, streamARN, shard); err != nil {
			return nil, err
		}
	}
	return out.ShardIterator, nil
}

// HoldsStart reports whether the shard still holds its first record; false if the endpoint does not understand the
// question. Trimming is an error, a TrimmedDataAccessException or ResourceNotFoundException, as is what may pass.
func HoldsStart(ctx context.Context, calls Streams, streamARN string, shard Shard) (bool, error) {
	if shard.Start == "" {
		return false, nil
	}
	_, err := calls.GetShardIterator(ctx, &dynamodbstreams.GetShardIteratorInput{
		StreamArn:         &streamARN,
		ShardId:           &shard.ID,
		ShardIteratorType: streams.ShardIteratorTypeAtSequenceNumber,
		SequenceNumber:    &shard.Start,
	})
	if err != nil && Classify(err) == VerdictFatal {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("asking for the first record of shard %s: %w", shard.ID, err)
	}
	return true, nil
}
