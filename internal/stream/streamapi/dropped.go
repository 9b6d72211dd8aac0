package streamapi

import (
	"context"
	"errors"
	"math/big"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/dynamill/dynamill/change"
)

// Dropped reports how far the stream has dropped a shard's records behind the sequence number after ("": behind its beginning):
//   - "": it holds all of them
//   - the number before the oldest record that it holds
//   - Highest: the shard is gone, or at its end and empty
//   - after itself: the shard is open and empty, so the stream does not tell; DynamoDB closes a shard long before that
func Dropped(ctx context.Context, calls Streams, streamARN string, shard Shard, after string) (upTo string, err error) {
	for {
		upTo, err = dropped(ctx, calls, streamARN, shard, after)
		if !is[*streams.ExpiredIteratorException](err) || ctx.Err() != nil { // of a process that slept
			break
		}
	}
	if err != nil && Classify(err) == VerdictGone {
		return Highest, nil
	}
	return upTo, err
}

func dropped(ctx context.Context, calls Streams, streamARN string, shard Shard, after string) (upTo string, err error) {
	iterator, err := OpenShard(ctx, calls, streamARN, shard, Place{After: after, Whole: true})
	if err == nil {
		_, err = calls.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: iterator, Limit: aws.Int32(1)})
	}
	if err == nil || !is[*streams.TrimmedDataAccessException](err) {
		return "", err
	}
	upTo = after
	err = Tail{Streams: calls, StreamARN: streamARN, Shard: shard, EmptyPolls: oldestPolls}.Read(ctx, Place{},
		func(page []streams.Record, last bool) error {
			switch {
			case len(page) > 0 && page[0].Dynamodb != nil:
				upTo = Before(aws.ToString(page[0].Dynamodb.SequenceNumber))
				return errFound
			case last:
				upTo = Highest
			}
			return nil
		})
	if errors.Is(err, errFound) {
		err = nil
	}
	return upTo, err
}

// oldestPolls is how many empty pages are read in search of the oldest record.
const oldestPolls = 5

var errFound = errors.New("found")

// Highest is the highest sequence number that there can be.
var Highest = strings.Repeat("9", change.SequenceDigitsMax)

// Before is the sequence number before another one; "" if there is none.
func Before(sequence string) string {
	n, ok := new(big.Int).SetString(sequence, 10)
	if !ok || n.Sign() <= 0 {
		return ""
	}
	return n.Sub(n, big.NewInt(1)).String()
}
