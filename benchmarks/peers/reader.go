package main

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"golang.org/x/sync/errgroup"

	"github.com/dynamill/dynamill/internal/pace"
)

// handler does by hand what a rule of dynamill declares. It gets the records of one shard, in order.
type handler func(ctx context.Context, client *dynamodb.Client, table string, records []streams.Record) error

// byHand is a contender that reads the stream with the SDK and calls a handler, as Lambda's event
// source mapping does: one batch of a shard at a time, and an idle shard is asked again after a while.
func byHand(handle handler) contender {
	return func(ctx context.Context, j job, m *meter) error {
		config := j.Endpoint.config()
		m.attach(&config)
		client := dynamodb.NewFromConfig(config)
		from := streams.ShardIteratorTypeLatest
		if j.Oldest {
			from = streams.ShardIteratorTypeTrimHorizon
		}
		return readStream(ctx, dynamodbstreams.NewFromConfig(config), j.StreamARN, from, j.Poll,
			func(ctx context.Context, records []streams.Record) error {
				defer m.work()()
				return handle(ctx, client, j.Table, records)
			})
	}
}

// readStream reads all shards side by side until ctx ends. The next page is fetched while one is handled.
func readStream(ctx context.Context, client *dynamodbstreams.Client, arn string, from streams.ShardIteratorType, idle time.Duration,
	handle func(context.Context, []streams.Record) error,
) error {
	described, err := client.DescribeStream(ctx, &dynamodbstreams.DescribeStreamInput{StreamArn: &arn})
	if err != nil {
		return fmt.Errorf("describing the stream: %w", err)
	}
	group, reading := errgroup.WithContext(ctx)
	for _, shard := range described.StreamDescription.Shards {
		pages := make(chan []streams.Record, 1)
		group.Go(func() error {
			defer close(pages)
			return readShard(reading, client, arn, shard, from, idle, pages)
		})
		group.Go(func() error {
			for page := range pages {
				if err := handle(reading, page); err != nil {
					return fmt.Errorf("handling %d records: %w", len(page), err)
				}
			}
			return nil
		})
	}
	return group.Wait()
}

func readShard(ctx context.Context, client *dynamodbstreams.Client, arn string, shard streams.Shard, from streams.ShardIteratorType,
	idle time.Duration, pages chan<- []streams.Record,
) error {
	opened, err := client.GetShardIterator(ctx, &dynamodbstreams.GetShardIteratorInput{
		StreamArn: &arn, ShardId: shard.ShardId, ShardIteratorType: from,
	})
	if err != nil {
		return fmt.Errorf("opening shard %s: %w", aws.ToString(shard.ShardId), err)
	}
	for iterator := opened.ShardIterator; iterator != nil; {
		page, err := client.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: iterator})
		if err != nil {
			return fmt.Errorf("reading shard %s: %w", aws.ToString(shard.ShardId), err)
		}
		iterator = page.NextShardIterator
		if len(page.Records) == 0 {
			if err := pace.Sleep(ctx, idle); err != nil {
				return err
			}
			continue
		}
		select {
		case pages <- page.Records:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
