package main

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// recordsPageMax is the most records that GetRecords returns.
const recordsPageMax = 1000

// readBare asks for page after page. It keeps no progress, and looks at
// nothing but each page's length.
func readBare(ctx context.Context, src *source, _ string, count *counter) error {
	described, err := src.streams.DescribeStream(ctx, &dynamodbstreams.DescribeStreamInput{StreamArn: &src.streamARN})
	if err != nil {
		return fmt.Errorf("describing the stream: %w", err)
	}
	shards := described.StreamDescription.Shards
	if len(shards) != 1 {
		return fmt.Errorf("the stream has %d shards; this loop is made for one, as DynamoDB Local gives every table", len(shards))
	}
	opened, err := src.streams.GetShardIterator(ctx, &dynamodbstreams.GetShardIteratorInput{
		StreamArn: &src.streamARN, ShardId: shards[0].ShardId, ShardIteratorType: streams.ShardIteratorTypeTrimHorizon,
	})
	if err != nil {
		return fmt.Errorf("opening the shard: %w", err)
	}
	for iterator := opened.ShardIterator; iterator != nil; {
		page, err := src.streams.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{
			ShardIterator: iterator, Limit: aws.Int32(recordsPageMax),
		})
		if err != nil {
			return fmt.Errorf("reading: %w", err)
		}
		if n := len(page.Records); n > 0 {
			count.add(n, aws.ToString(page.Records[n-1].Dynamodb.SequenceNumber))
		}
		select {
		case <-count.done:
			return nil
		default:
		}
		iterator = page.NextShardIterator
	}
	return fmt.Errorf("the shard ended before all was read")
}
