package follow

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dynamill/dynamill"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/environment"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/session"
	"github.com/dynamill/dynamill/internal/monitor"
	"github.com/dynamill/dynamill/replay/archive"
	"github.com/dynamill/dynamill/streamreader"
)

// asFlags says in flags what the library's remedies name by the fields of its configuration.
var asFlags = strings.NewReplacer(
	"Config.Table", "--table", "Config.StateTable", "--state-table", "Config.AWS.Region", "--region",
	"Config.AWS.BaseEndpoint", "--endpoint", "Config.Archive", "--archive",
)

// inFlags is an error of the library in the words of the command.
type inFlags struct{ error }

func (e inFlags) Error() string { return asFlags.Replace(e.error.Error()) }
func (e inFlags) Unwrap() error { return e.error }

// failureOf turns the end of the work into the sentence to be read. r is nil if nothing was followed.
func failureOf(env *environment.Environment, r *dynamill.Running, err error) error {
	switch {
	case r == nil && (errors.Is(err, errDrainTimeout) || errors.Is(err, session.ErrStopped)):
		return fmt.Errorf("%w; run again to go on", err)
	case errors.Is(err, errDrainTimeout):
		return fmt.Errorf("not drained within --drain-timeout: %s; run again to go on", unfinished(r))
	case errors.Is(err, session.ErrStopped), errors.Is(err, context.Canceled):
		return fmt.Errorf("stopped before the stream was drained: %s; run again to go on", unfinished(r))
	}
	var skipped *streamreader.SkippedError
	var ended *dynamill.EndedError
	var unwritten *archive.WriteError
	switch {
	case errors.As(err, &skipped):
		return fmt.Errorf("not everything is drained: delete the rows of these shards from the lease table %s and drain again (docs/operations.md, \"A shard that is skipped\"): %w",
			env.LeaseTable, err)
	case errors.As(err, &unwritten):
		return ending.Unsuited("%w", unwritten)
	case environment.IsSetup(err):
		return inFlags{env.Classify(err)}
	case errors.As(err, &ended):
		ended.Remedy = asFlags.Replace(ended.Remedy)
		if state := monitor.State(ended.State); state == monitor.StreamDisabled || state == monitor.TableDeleted {
			return ending.Unsuited("%w", ended)
		}
		return ended
	}
	return env.Classify(err)
}

// unfinished says what a drain that was cut short has left.
func unfinished(r *dynamill.Running) string {
	now := r.Status()
	left := fmt.Sprintf("the stream was applied up to %s ago", now.Stream.Lag.Round(time.Second))
	if now.Stream.Records == 0 {
		left = "no record was applied"
	}
	if seeding := seedText(now); seeding != "" {
		left += ", seeding was not finished (" + seeding + ")"
	}
	return left
}
