package follow

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dynamill/dynamill"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/environment"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/session"
	"github.com/dynamill/dynamill/internal/monitor"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/replay/archive"
	"github.com/dynamill/dynamill/internal/streamreader"
)

func TestAnEndHasItsExitCodeAndItsRemedyInFlags(t *testing.T) {
	env := &environment.Environment{Table: "app", StateTable: "app-dynamill", LeaseTable: "app-dynamill-leases", Region: "eu-west-1"}
	cause := errors.New("the cause")
	ended := func(state monitor.State, remedy string) error {
		return &dynamill.EndedError{State: string(state), Problem: "it ended", Remedy: remedy, Err: cause}
	}
	for name, c := range map[string]struct {
		err  error
		want string
		code int
	}{
		"records lost": {ended(monitor.RecordsLost, "run `dynamill replay --restart`"),
			"it ended: run `dynamill replay --restart` (the cause)", ending.ExitFailed},
		"stream replaced": {ended(monitor.StreamReplaced, "replay"), "it ended: replay", ending.ExitFailed},
		"stream disabled": {ended(monitor.StreamDisabled, "enable it"), "it ended: enable it", ending.ExitEnvironment},
		"table deleted": {ended(monitor.TableDeleted, "check Config.Table, Config.AWS.Region"), "it ended: check --table, --region",
			ending.ExitEnvironment},
		"no such table": {&projections.SetupError{Problem: "Config.Archive x cannot be used", Remedy: "see Config.StateTable", Err: cause},
			"--archive x cannot be used: see --state-table", ending.ExitEnvironment},
		"an unwritten archive": {&archive.WriteError{Dir: "x", Reason: cause}, "the archive in x cannot be written", ending.ExitEnvironment},
		"a skipped shard": {&streamreader.SkippedError{Shards: []string{"shard-1"}},
			"delete the rows of these shards from the lease table app-dynamill-leases", ending.ExitFailed},
		"newer rules":  {projections.ErrEpochMoved, "newer rules", ending.ExitFailed},
		"a lost lease": {streamreader.ErrLeaseLost, streamreader.ErrLeaseLost.Error(), ending.ExitFailed},
		"a bug":        {cause, "the cause", ending.ExitFailed},
		"a stop at the start": {fmt.Errorf("%w: nothing was followed yet", session.ErrStopped),
			"nothing was followed yet; run it again to resume",
			ending.ExitFailed},
	} {
		got := failureOf(env, nil, fmt.Errorf("following: %w", c.err))
		if !errors.Is(got, c.err) && !errors.As(got, new(*archive.WriteError)) || ending.ExitCode(got) != c.code ||
			!strings.Contains(got.Error(), c.want) {
			t.Errorf("%s: exit code %d, want %d; %v, want %q in it", name, ending.ExitCode(got), c.code, got, c.want)
		}
	}
}
