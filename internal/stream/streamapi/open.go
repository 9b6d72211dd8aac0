package streamapi

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// OpenShard returns an iterator at a place. TRIM_HORIZON skips trimmed records without a word;
// so a shard that was whole when it was found is asked, after its iterator was
// taken, whether its first record is still there.
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

// HoldsStart asks whether the shard still holds its first record. An error is
// a TrimmedDataAccessException, a ResourceNotFoundException, or one to retry;
// an endpoint that does not understand the question answers neither yes nor no.
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
