package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/dynamill/dynamill/internal/monitor"
	"github.com/dynamill/dynamill/projections"
	"github.com/dynamill/dynamill/streamreader"
)

func TestAnEndHasItsStateAndItsRemedy(t *testing.T) {
	const arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/app/stream/1"
	streaming := func(arn string) any {
		return description(map[string]any{
			"LatestStreamArn":     arn,
			"StreamSpecification": map[string]any{"StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES"},
		})
	}
	trimmed := &streamreader.TrimmedError{StreamARN: arn, Shard: "s", Checkpoint: "1", Err: &types.TrimmedDataAccessException{}}
	missing := &streamreader.TrimmedError{StreamARN: arn, Shard: "s", Checkpoint: "1", Err: &types.ResourceNotFoundException{}}
	unlisted := &streamreader.TrimmedError{StreamARN: arn, Shard: "s", Checkpoint: "1"}
	for name, c := range map[string]struct {
		err    error
		status int
		table  any // as it is described now
		state  monitor.State
		remedy string
		code   int
	}{
		"records were dropped":             {trimmed, 200, streaming(arn), monitor.RecordsLost, "`dynamill replay --restart`", exitFailed},
		"a shard is no longer listed":      {unlisted, 200, streaming(arn), monitor.RecordsLost, "delete the table app-dynamill-leases", exitFailed},
		"a shard is gone, and nobody says": {missing, 400, refusal("AccessDeniedException", ""), monitor.RecordsLost, "`dynamill replay --restart`", exitFailed},
		"the table went with its stream":   {missing, 400, refusal("ResourceNotFoundException", ""), monitor.TableDeleted, "--table", exitEnvironment},
		"the table is on its way out": {missing, 200, map[string]any{"Table": map[string]any{"TableStatus": "DELETING"}},
			monitor.TableDeleted, "--table", exitEnvironment},
		"a disabled stream was read to its end": {streamreader.ErrStreamEnded, 200, description(map[string]any{"LatestStreamArn": arn}),
			monitor.StreamDisabled, "update-table", exitEnvironment},
		"another stream took its place": {streamreader.ErrStreamNotFound, 200, streaming(arn + "2"), monitor.StreamReplaced, "`dynamill replay --restart`", exitFailed},
		"the stream is not found":       {streamreader.ErrStreamNotFound, 200, streaming(arn), monitor.StreamDisabled, "update-table", exitEnvironment},
		"a shard was skipped":           {&streamreader.SkippedError{Shards: []string{"shard-1"}}, 200, streaming(arn), "", "", exitFailed},
		"newer rules":                   {projections.ErrEpochMoved, 200, streaming(arn), "", "", exitFailed},
		"a bug":                         {errors.New("index out of range"), 200, streaming(arn), "", "", exitFailed},
		"a lost lease":                  {streamreader.ErrLeaseLost, 200, streaming(arn), "", "", exitFailed},
	} {
		t.Run(name, func(t *testing.T) {
			withoutAWS(t)
			o := &options{endpoint: stub(t, c.status, c.table), region: "eu-west-1"}
			env, err := o.connect(t.Context(), "app", (&app{options: options{logLevel: "error"}}).logger(t.Output()))
			if err != nil {
				t.Fatal(err)
			}
			f := &follower{env: env, engine: &projections.Engine{}, streamARN: arn}
			stopped, cancel := context.WithCancel(t.Context())
			cancel() // the table is asked all the same
			got := f.failure(stopped, fmt.Errorf("following: %w", c.err))
			var ended *endedError
			if named := errors.As(got, &ended); named != (c.state != "") {
				t.Fatalf("%v; want the state %q", got, c.state)
			}
			if !errors.Is(got, c.err) || exitCode(got) != c.code {
				t.Errorf("exit code %d, want %d: %v", exitCode(got), c.code, got)
			}
			if ended != nil && (ended.state != c.state || !strings.Contains(ended.remedy, c.remedy) || !strings.Contains(got.Error(), ended.remedy)) {
				t.Errorf("state %q, want %q; remedy %q, want %q in it and in %v", ended.state, c.state, ended.remedy, c.remedy, got)
			}
		})
	}
}
