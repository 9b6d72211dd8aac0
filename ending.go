package dynamill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/smithy-go"

	"github.com/dynamill/dynamill/internal/awserror"
	"github.com/dynamill/dynamill/internal/following"
	"github.com/dynamill/dynamill/internal/streamreader"
)

// The states of an EndedError. docs/operations.md says more about each.
const (
	recordsLost    = "records lost"    // the stream dropped records that were not applied
	streamReplaced = "stream replaced" // the table has another stream than the one that was followed
	streamDisabled = "stream disabled" // the table has no stream any more
	tableDeleted   = "table deleted"   // the table, or the state table, is not there any more
)

// EndedError says that a table cannot be followed before a person acts.
type EndedError struct {
	State   string // "records lost", "stream replaced", "stream disabled" or "table deleted": docs/operations.md
	Problem string // a sentence
	Remedy  string // what to do about it
	Err     error  // the cause; nil if checkpoints alone told
}

func (e *EndedError) Error() string {
	text := e.Problem + ": " + e.Remedy
	if e.Err != nil {
		text += " (" + e.Err.Error() + ")"
	}
	return text
}

func (e *EndedError) Unwrap() error { return e.Err }

// ended turns the error that ended the work into an *EndedError if the state that it leaves has a name.
func (f *follower) ended(ctx context.Context, err error) error {
	ended := &EndedError{State: f.stateAfter(ctx, err), Err: err}
	switch ended.State {
	case recordsLost:
		ended.Problem, ended.Remedy = "the stream no longer holds records that were not applied", f.own.ReplayMissed()
	case streamReplaced:
		ended.Problem = fmt.Sprintf("table %q has another stream than the one that was followed: "+
			"no process has applied the changes between the two", f.Table)
		ended.Remedy = f.own.ReplayMissed()
	case streamDisabled:
		ended.Problem = fmt.Sprintf("the stream of table %q is disabled or gone", f.Table)
		ended.Remedy = "enable it with `" + following.EnableStream(f.place) + "` and start again"
	case tableDeleted:
		ended.Problem = fmt.Sprintf("table %q or its state table %s was deleted", f.Table, f.StateTable)
		ended.Remedy = "check Config.Table, Config.AWS.Region and the state table, and start again"
	default:
		return err
	}
	return ended
}

// stateAfter names the state that an error leaves, if it has a name. The table tells whether something that is gone was
// deleted, disabled or replaced.
func (f *follower) stateAfter(ctx context.Context, err error) string {
	lost := errors.As(err, new(*streamreader.TrimmedError))
	gone := errors.Is(err, streamreader.ErrStreamEnded) || errors.Is(err, streamreader.ErrStreamNotFound)
	refusal, refused := errors.AsType[smithy.APIError](err)
	missing := refused && slices.Contains(awserror.MissingCodes, refusal.ErrorCode())
	switch {
	case lost && errors.As(err, new(*streams.TrimmedDataAccessException)):
		return recordsLost
	case lost:
		return cmp.Or(f.look(ctx), recordsLost)
	case gone:
		return cmp.Or(f.look(ctx), streamDisabled)
	case missing:
		return f.look(ctx)
	}
	return ""
}

const lookTimeout = 5 * time.Second // for describing two tables

// look asks what became of the table and its stream; "" if both are as before, or DynamoDB does not answer.
func (f *follower) look(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTimeout)
	defer cancel()
	described := map[string]*types.TableDescription{}
	for _, table := range []string{f.Table, f.StateTable} {
		out, err := f.Tables.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &table})
		deleting := err == nil && out.Table != nil && out.Table.TableStatus == types.TableStatusDeleting
		if deleting || errors.As(err, new(*types.ResourceNotFoundException)) {
			return tableDeleted
		}
		if err != nil || out.Table == nil {
			return ""
		}
		described[table] = out.Table
	}
	switch arn := following.EnabledStream(described[f.Table]); arn {
	case "":
		return streamDisabled
	case f.streamARN:
		return ""
	}
	return streamReplaced
}
