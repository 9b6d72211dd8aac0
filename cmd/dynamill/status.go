package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/status"
)

func addStatusFlags(flags *pflag.FlagSet, o *status.Options) {
	flags.DurationVar(&o.Watch, "watch", 0, "look again at this `interval` until stopped; --watch alone: every "+status.WatchDefault.String())
	flags.Lookup("watch").NoOptDefVal = status.WatchDefault.String()
	flags.BoolVar(&o.Check, "check", false, "print the first line only, and end with exit code 1 unless the table is followed")
	flags.DurationVar(&o.LagMax, "ready-lag", status.ReadyLagDefault, "a lag beyond this `duration` is not healthy (0: lag does not count)")
}

// noInterval refuses any argument, and says how an interval is given: pflag takes none behind a space.
func noInterval(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if _, err := time.ParseDuration(args[0]); err == nil {
		return fmt.Errorf("give the interval as --watch=%s", args[0])
	}
	return fmt.Errorf("`dynamill status` takes no argument %q", args[0])
}

const statusHelp = `Says in its first line how the table is followed: following, catching up, nothing runs, or records lost, with
what to do.
Then it shows which rules are live or still being seeded, what large fan-outs have left, what is parked, which process reads
each shard of the stream, and how far. It works whether or not anything runs, writes nothing, and needs no rule file where
--table is given; with one it names the kinds of rules, and tells which of the file's rules are not registered.

It reads the lease table and the state table, and of each shard up to 3,000 records behind its checkpoint. Where lease rows
name an owner, it reads them again until the owner renews one, for at most one and a half of its --lease-term.

--check prints the first line only. It ends with exit code 0 if the table is followed, 1 if not or if the lag is beyond
--ready-lag, and 3 if that cannot be found out: for cron jobs and containers' health checks.`

func (a *app) statusCommand() *cobra.Command {
	var options status.Options
	command := &cobra.Command{
		Use:   "status",
		Short: "Shows whether the table is followed, and how rules, fan-outs, parked records and shards stand",
		Long:  statusHelp,
		Example: "  dynamill status --table app\n  dynamill status --table app --watch\n  dynamill status --table app --json\n" +
			"  dynamill status --table app --check || echo 'app is not followed'",
		Args:    noInterval,
		PreRunE: func(cmd *cobra.Command, _ []string) error { return options.Refuse(cmd.Flags().Changed("watch")) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			return status.Show(cmd.Context(), &a.out, &a.settings, cmd.Flags().Changed("rules"), options)
		},
	}
	addStatusFlags(command.Flags(), &options)
	return command
}
