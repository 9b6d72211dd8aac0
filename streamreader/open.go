package streamreader

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// openShard returns an iterator at a place. TRIM_HORIZON skips trimmed records without a word;
// so a shard that was whole when it was found is asked, after its iterator was
// taken, whether its first record is still there.
func openShard(ctx context.Context, calls Streams, streamARN string, shard shardInfo, from place) (*string, error) {
	in := &dynamodbstreams.GetShardIteratorInput{
		StreamArn:         &streamARN,
		ShardId:           &shard.id,
		ShardIteratorType: streams.ShardIteratorTypeTrimHorizon,
	}
	switch {
	case from.after != "":
		in.ShardIteratorType = streams.ShardIteratorTypeAfterSequenceNumber
		in.SequenceNumber = &from.after
	case from.at != "":
		in.ShardIteratorType = streams.ShardIteratorTypeAtSequenceNumber
		in.SequenceNumber = &from.at
	}
	out, err := calls.GetShardIterator(ctx, in)
	if err != nil {
		return nil, fmt.Errorf("opening shard %s: %w", shard.id, err)
	}
	if out.ShardIterator == nil {
		return nil, permanentf("opening shard %s: the stream gave no iterator", shard.id)
	}
	if in.SequenceNumber == nil && from.whole {
		if _, err := holdsStart(ctx, calls, streamARN, shard); err != nil {
			return nil, err
		}
	}
	return out.ShardIterator, nil
}

// holdsStart asks whether the shard still holds its first record. An error is
// a TrimmedDataAccessException, a ResourceNotFoundException, or one to retry;
// an endpoint that does not understand the question answers neither yes nor no.
func holdsStart(ctx context.Context, calls Streams, streamARN string, shard shardInfo) (bool, error) {
	if shard.start == "" {
		return false, nil
	}
	_, err := calls.GetShardIterator(ctx, &dynamodbstreams.GetShardIteratorInput{
		StreamArn:         &streamARN,
		ShardId:           &shard.id,
		ShardIteratorType: streams.ShardIteratorTypeAtSequenceNumber,
		SequenceNumber:    &shard.start,
	})
	if err != nil && classify(err) == verdictFatal {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("asking for the first record of shard %s: %w", shard.id, err)
	}
	return true, nil
}
