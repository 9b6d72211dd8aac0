package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dynamill/dynamill"
	"github.com/dynamill/dynamill/internal/monitor"
	"github.com/dynamill/dynamill/projections"
	"github.com/dynamill/dynamill/replay/archive"
	"github.com/dynamill/dynamill/streamreader"
)

func TestAnEndHasItsExitCodeAndItsRemedyInFlags(t *testing.T) {
	env := &environment{table: "app", stateTable: "app-dynamill", leaseTable: "app-dynamill-leases", region: "eu-west-1"}
	cause := errors.New("the cause")
	ended := func(state monitor.State, remedy string) error {
		return &dynamill.EndedError{State: string(state), Problem: "it ended", Remedy: remedy, Err: cause}
	}
	for name, c := range map[string]struct {
		err  error
		want string
		code int
	}{
		"records lost":    {ended(monitor.RecordsLost, "run `dynamill replay --restart`"), "it ended: run `dynamill replay --restart` (the cause)", exitFailed},
		"stream replaced": {ended(monitor.StreamReplaced, "replay"), "it ended: replay", exitFailed},
		"stream disabled": {ended(monitor.StreamDisabled, "enable it"), "it ended: enable it", exitEnvironment},
		"table deleted":   {ended(monitor.TableDeleted, "check Config.Table, Config.AWS.Region"), "it ended: check --table, --region", exitEnvironment},
		"no such table": {&projections.SetupError{Problem: "Config.Archive x cannot be used", Remedy: "see Config.StateTable", Err: cause},
			"--archive x cannot be used: see --state-table", exitEnvironment},
		"an unwritten archive": {&archive.WriteError{Dir: "x", Reason: cause}, "the archive in x cannot be written", exitEnvironment},
		"a skipped shard":      {&streamreader.SkippedError{Shards: []string{"shard-1"}}, "delete the rows of these shards from the lease table app-dynamill-leases", exitFailed},
		"newer rules":          {projections.ErrEpochMoved, "newer rules", exitFailed},
		"a lost lease":         {streamreader.ErrLeaseLost, streamreader.ErrLeaseLost.Error(), exitFailed},
		"a bug":                {cause, "the cause", exitFailed},
		"a stop at the start":  {fmt.Errorf("%w: nothing was followed yet", errStopped), "nothing was followed yet; run again to go on", exitFailed},
	} {
		got := runFailure(env, nil, fmt.Errorf("following: %w", c.err))
		if !errors.Is(got, c.err) && !errors.As(got, new(*archive.WriteError)) || exitCode(got) != c.code || !strings.Contains(got.Error(), c.want) {
			t.Errorf("%s: exit code %d, want %d; %v, want %q in it", name, exitCode(got), c.code, got, c.want)
		}
	}
}
