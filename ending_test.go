package dynamill

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/dynamill/dynamill/internal/awserror"
	"github.com/dynamill/dynamill/internal/following"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/streamreader"
)

func TestAnEndHasItsStateAndItsRemedy(t *testing.T) {
	const arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/app/stream/1"
	table := func(stream, view string) *types.TableDescription {
		d := &types.TableDescription{TableStatus: types.TableStatusActive, LatestStreamArn: &stream}
		if view != "" {
			d.StreamSpecification = &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewType(view)}
		}
		return d
	}
	streaming := func(arn string) describing { return describing{table: table(arn, "NEW_AND_OLD_IMAGES")} }
	trimmed := &streamreader.TrimmedError{StreamARN: arn, Shard: "s", Checkpoint: "1", Err: &streams.TrimmedDataAccessException{}}
	missing := &streamreader.TrimmedError{StreamARN: arn, Shard: "s", Checkpoint: "1", Err: &streams.ResourceNotFoundException{}}
	unlisted := &streamreader.TrimmedError{StreamARN: arn, Shard: "s", Checkpoint: "1"}
	for name, c := range map[string]struct {
		err    error
		table  describing // as it is described now
		state  string
		remedy string
	}{
		"records were dropped":             {trimmed, streaming(arn), recordsLost, "`dynamill replay --restart`"},
		"a shard is no longer listed":      {unlisted, streaming(arn), recordsLost, "delete the table app-dynamill-leases"},
		"a shard is gone, and nobody says": {missing, describing{err: errors.New("access denied")}, recordsLost, "`dynamill replay --restart`"},
		"the table went with its stream":   {missing, describing{err: &types.ResourceNotFoundException{}}, tableDeleted, "Config.Table"},
		"the table is on its way out": {missing, describing{table: &types.TableDescription{TableStatus: types.TableStatusDeleting}},
			tableDeleted, "Config.Table"},
		"a disabled stream was read to its end": {streamreader.ErrStreamEnded, describing{table: table(arn, "")},
			streamDisabled, "update-table"},
		"another stream took its place": {streamreader.ErrStreamNotFound, streaming(arn + "2"), streamReplaced, "`dynamill replay --restart`"},
		"the stream is not found":       {streamreader.ErrStreamNotFound, streaming(arn), streamDisabled, "update-table"},
		"a shard was skipped":           {&streamreader.SkippedError{Shards: []string{"shard-1"}}, streaming(arn), "", ""},
		"newer rules":                   {projections.ErrEpochMoved, streaming(arn), "", ""},
		"a bug":                         {errors.New("index out of range"), streaming(arn), "", ""},
		"a lost lease":                  {streamreader.ErrLeaseLost, streaming(arn), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := &follower{
				Config: Config{Table: "app", StateTable: "app-dynamill", Tables: c.table}, place: awserror.Place{Table: "app", Region: "eu-west-1"},
				own: following.Tables{State: "app-dynamill", Lease: "app-dynamill-leases"}, streamARN: arn,
			}
			stopped, cancel := context.WithCancel(t.Context())
			cancel() // the table is asked all the same
			got := f.ended(stopped, fmt.Errorf("following: %w", c.err))
			var ended *EndedError
			if named := errors.As(got, &ended); named != (c.state != "") {
				t.Fatalf("%v; want the state %q", got, c.state)
			}
			if !errors.Is(got, c.err) {
				t.Errorf("%v does not hold its cause", got)
			}
			if ended != nil && (ended.State != c.state || !strings.Contains(ended.Remedy, c.remedy) ||
				!strings.Contains(got.Error(), ended.Remedy)) {
				t.Errorf("state %q, want %q; remedy %q, want %q in it and in %v", ended.State, c.state, ended.Remedy, c.remedy, got)
			}
		})
	}
}

// describing describes each table alike.
type describing struct {
	projections.Client
	table *types.TableDescription
	err   error
}

func (d describing) DescribeTable(ctx context.Context, _ *dynamodb.DescribeTableInput,
	_ ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return &dynamodb.DescribeTableOutput{Table: d.table}, d.err
}
