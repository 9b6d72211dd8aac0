package main

import (
	"github.com/spf13/cobra"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/commandline"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/replaying"
)

func (a *app) replayCommand() *cobra.Command {
	var o replaying.Options
	command := newCommand("replay", commandline.NoArguments, func(cmd *cobra.Command, _ []string) error {
		return replaying.Run(cmd.Context(), &a.out, &a.settings, o)
	})
	command.PreRunE = func(*cobra.Command, []string) error { return o.Check(&a.settings, a.typed) }
	flags := command.Flags()
	flags.StringVar(&o.From, "from", replaying.FromScan,
		"the `source`: scan, export://PATH, s3://BUCKET/PREFIX (an export), archive://PATH,\nkeys://FILE, keys:- (standard input) or parked")
	flags.StringArrayVar(&o.Rules, "rule", nil, "replay only the items of this rule, by `name`; may be repeated (default: all)")
	flags.StringArrayVar(&o.Recount, "recount", nil,
		"have a rule that counts by stream position counted anew, by `name`, and end: a process that runs\ncounts the table; may be repeated")
	flags.IntVar(&o.Segments, "segments", 0, "divide a scan into this `number` of segments (default: by the table's size)")
	flags.IntVar(&o.Parallel, "parallel", 4, "work on this `number` of segments or files at a time")
	flags.IntVar(&o.Budget, "budget", 0, "write at most this many write `units` per second (0: no bound)")
	flags.Float64Var(&o.ReadRateMax, "read-rate", 0, "scan at most this many read `units` per second (0: no bound)")
	flags.BoolVar(&o.EventuallyConsistent, "eventually-consistent", false, "scan at half the cost; not where rules are brought into force")
	flags.BoolVar(&o.DryRun, "dry-run", false, "write nothing: say what would be changed, by rule, and what that would cost")
	flags.BoolVar(&o.Restart, "restart", false, "begin anew, and forget what an unfinished replay has done")
	flags.BoolVar(&o.Yes, "yes", false, "carry out changed and removed rules without asking")
	return command
}
