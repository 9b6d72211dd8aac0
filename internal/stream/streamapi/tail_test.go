package streamapi_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/dynamill/dynamill/internal/stream/streamapi"
)

// busy is a stream of one shard, to which an application writes ten records a second.
type busy struct {
	streamapi.Streams
	read time.Time // records that were made before are read
}

func (b *busy) GetShardIterator(context.Context, *dynamodbstreams.GetShardIteratorInput, ...func(*dynamodbstreams.Options),
) (*dynamodbstreams.GetShardIteratorOutput, error) {
	return &dynamodbstreams.GetShardIteratorOutput{ShardIterator: aws.String("here")}, nil
}

func (b *busy) GetRecords(context.Context, *dynamodbstreams.GetRecordsInput, ...func(*dynamodbstreams.Options),
) (*dynamodbstreams.GetRecordsOutput, error) {
	time.Sleep(10 * time.Millisecond)
	out := &dynamodbstreams.GetRecordsOutput{NextShardIterator: aws.String("here")}
	for ; b.read.Before(time.Now()); b.read = b.read.Add(100 * time.Millisecond) {
		record := &streams.StreamRecord{ApproximateCreationDateTime: aws.Time(b.read.Truncate(time.Second))}
		out.Records = append(out.Records, streams.Record{Dynamodb: record})
	}
	return out, nil
}

// TestABusyShardIsReadUntilItsRecordsAreLater has a shard that never gives three empty pages in a row.
func TestABusyShardIsReadUntilItsRecordsAreLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		tail := streamapi.Tail{Streams: &busy{read: began}, EmptyPolls: 3, Spacing: 250 * time.Millisecond, Until: began.Add(5 * time.Second)}
		read := 0
		err := tail.Read(ctx, streamapi.Place{}, func(page []streams.Record, _ bool) error { read += len(page); return nil })
		if took := time.Since(began); err != nil || took < 5*time.Second || took > 7*time.Second || read < 50 {
			t.Errorf("%d records are read in %v: %v", read, took, err)
		}
	})
}
