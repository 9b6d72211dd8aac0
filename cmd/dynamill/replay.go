package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/commandline"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/replaying"
)

func addReplayFlags(flags *pflag.FlagSet, o *replaying.Options) {
	flags.StringVar(&o.From, "from", replaying.FromScan,
		"the `source`: scan, export://PATH, s3://BUCKET/PREFIX (an export), archive://PATH,\nkeys://FILE, keys:- (standard input) or parked")
	flags.StringArrayVar(&o.Rules, "rule", nil, "replay only the items of this rule, by `name`; may be repeated (default: all)")
	flags.IntVar(&o.Segments, "segments", 0, "divide a scan into this `number` of segments (default: by the table's size)")
	flags.IntVar(&o.Parallel, "parallel", 4, "work on this `number` of segments or files at a time")
	flags.IntVar(&o.WriteRateMax, "rate", 0, "write at most this many write `units` per second (0: no bound)")
	flags.Float64Var(&o.ReadRateMax, "read-rate", 0, "scan at most this many read `units` per second (0: no bound)")
	flags.BoolVar(&o.EventuallyConsistent, "eventually-consistent", false, "scan at half the cost; not where rules are brought into force")
	flags.BoolVar(&o.DryRun, "dry-run", false, "write nothing: say what would be changed, by rule, and what that would cost")
	flags.BoolVar(&o.Restart, "restart", false, "begin anew, and forget what an unfinished replay has done")
	flags.BoolVar(&o.Yes, "yes", false, "carry out changed and removed rules without asking")
}

func (a *app) replayCommand() *cobra.Command {
	var options replaying.Options
	command := &cobra.Command{
		Use:   "replay",
		Short: "Applies the rules to what is in the table",
		Long: "Brings changed rules into force over all items; where they are in force, brings every item to what the rules ask\n" +
			"for, and cleans up after items that have vanished. Items that are right cost reads and no writes. The stream may be\n" +
			"followed at the same time: whatever comes is derived from the item as it is now.\n\n" +
			"Several processes started alike share the work. The first SIGINT or SIGTERM stops within seconds; the same command\n" +
			"goes on from there, also after a kill. A replay that has ended begins anew, and so does one left for a day.\n\n" +
			"Where the rule file changes or removes rules in force, it says so and asks before it carries that out; without a\n" +
			"terminal it wants --yes. `dynamill plan` says the same without doing anything.\n\n" + commandline.ConfigurationHelp,
		Example: "  dynamill replay --table app\n" +
			"  dynamill replay --table app --dry-run\n" +
			"  dynamill replay --table app --rule member-count --rate 200 --read-rate 1000\n" +
			"  dynamill replay --table app --from s3://backups/AWSDynamoDB/01693685827463-2d8752fd\n" +
			"  dynamill replay --table app --from archive:///var/lib/dynamill/archive\n" +
			"  grep -o 'USER#[0-9]*/PROFILE' errors.log | dynamill replay --table app --from keys:-\n" +
			"  dynamill replay --table app --from parked",
		Args:    cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error { return options.Check(&a.settings, a.typed["segments"]) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			return replaying.Run(cmd.Context(), &a.out, &a.settings, options)
		},
	}
	addReplayFlags(command.Flags(), &options)
	return command
}
