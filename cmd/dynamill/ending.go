package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/smithy-go"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/awserror"
	"github.com/dynamill/dynamill/internal/monitor"
	"github.com/dynamill/dynamill/streamreader"
)

// failure turns the end of the work into the sentence to be read: an endedError
// where the state that it leaves has a name.
func (f *follower) failure(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, errDrainTimeout):
		return fmt.Errorf("not drained within --drain-timeout: %s; run again to go on", f.unfinished())
	case errors.Is(err, errStopped), errors.Is(err, context.Canceled):
		return fmt.Errorf("stopped before the stream was drained: %s; run again to go on", f.unfinished())
	}
	var skipped *streamreader.SkippedError
	if errors.As(err, &skipped) {
		return fmt.Errorf("not everything is drained: delete the rows of these shards from the lease table %s and drain again (docs/operations.md, \"A shard that is skipped\"): %w",
			f.env.leaseTable, err)
	}
	switch state := f.stateAfter(ctx, err); state {
	case monitor.RecordsLost:
		remedy := f.replayMissed()
		return &endedError{fmt.Errorf("the stream no longer holds records that were not applied: %s (%w)", remedy, err), state, remedy}
	case monitor.StreamReplaced:
		remedy := f.replayMissed()
		return &endedError{fmt.Errorf("table %q has another stream than the one that was followed, and what changed between the two reached nobody: %s (%w)",
			f.env.table, remedy, err), state, remedy}
	case monitor.StreamDisabled:
		remedy := "enable it with `" + f.env.enableStream() + "` and start again"
		return &endedError{unsuited("the stream of table %q is disabled or gone: %s (%w)", f.env.table, remedy, err), state, remedy}
	case monitor.TableDeleted:
		remedy := "check --table, --region and the state table, and start again"
		return &endedError{unsuited("table %q or its state table %s was deleted: %s (%w)", f.env.table, f.engine.Describe().StateTable, remedy, err), state, remedy}
	}
	return f.env.classify(err)
}

// stateAfter names the state that an error leaves; "" for errors that leave none
// of a name. Whether something that is gone was deleted, disabled or replaced
// the table tells.
func (f *follower) stateAfter(ctx context.Context, err error) monitor.State {
	var dropped *streams.TrimmedDataAccessException
	var trimmed *streamreader.TrimmedError
	var refusal smithy.APIError
	lost := errors.As(err, &trimmed)
	gone := errors.Is(err, streamreader.ErrStreamEnded) || errors.Is(err, streamreader.ErrStreamNotFound)
	missing := errors.As(err, &refusal) && slices.Contains(awserror.MissingCodes, refusal.ErrorCode())
	switch {
	case errors.As(err, &dropped) && lost:
		return monitor.RecordsLost
	case !lost && !gone && !missing:
		return ""
	}
	if found := f.look(ctx); found != "" {
		return found
	}
	switch {
	case lost:
		return monitor.RecordsLost
	case gone:
		return monitor.StreamDisabled
	}
	return ""
}

// look asks what became of the table and its stream; "" if both are as they
// were, or nobody answers.
func (f *follower) look(ctx context.Context) monitor.State {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), connectTimeout)
	defer cancel()
	described := map[string]*types.TableDescription{}
	for _, table := range []string{f.env.table, f.engine.Describe().StateTable} {
		out, err := f.env.tables.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &table})
		var missing *types.ResourceNotFoundException
		if errors.As(err, &missing) || err == nil && out.Table != nil && out.Table.TableStatus == types.TableStatusDeleting {
			return monitor.TableDeleted
		}
		if err != nil || out.Table == nil {
			return ""
		}
		described[table] = out.Table
	}
	table := described[f.env.table]
	switch stream := table.StreamSpecification; {
	case stream == nil || !aws.ToBool(stream.StreamEnabled):
		return monitor.StreamDisabled
	case table.LatestStreamArn != nil && *table.LatestStreamArn != f.streamARN:
		return monitor.StreamReplaced
	}
	return ""
}

// replayMissed is the remedy where the stream alone cannot make things right any
// more. The state table stays: it tells what is in force of items that vanished.
func (f *follower) replayMissed() string { return f.env.replayMissed() }

func (env *environment) replayMissed() string {
	return fmt.Sprintf("stop every `dynamill run` of this table, delete the table %s (checkpoints that lead nowhere), start `dynamill run` again, "+
		"and run `dynamill replay --restart` when it has caught up (docs/replay.md, \"After an outage\")", env.leaseTable)
}

// unfinished says what a drain that was cut short has left.
func (f *follower) unfinished() string {
	now := f.snapshot()
	left := []string{fmt.Sprintf("the stream was applied up to %s ago", now.Lag.Round(time.Second))}
	if now.Records == 0 {
		left[0] = "no record was applied"
	}
	if now.Seeding != "" {
		left = append(left, "seeding was not finished ("+now.Seeding+")")
	}
	return strings.Join(left, ", ")
}
