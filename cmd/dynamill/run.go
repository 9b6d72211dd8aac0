package main

import (
	"github.com/spf13/cobra"

	"github.com/dynamill/dynamill"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/commandline"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/follow"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/status"
)

func (a *app) runCommand() *cobra.Command {
	var o follow.Options
	command := newCommand("run", commandline.NoArguments, func(cmd *cobra.Command, _ []string) error {
		return follow.Run(cmd.Context(), &a.out, &a.settings, o)
	})
	command.PreRunE = func(cmd *cobra.Command, _ []string) error { return o.Check(cmd.Flags().Changed("drain-timeout")) }
	flags := command.Flags()
	flags.BoolVar(&o.Drain, "drain", false, "end once new rules are seeded and every change up to then is applied")
	flags.BoolVar(&o.BesideFunction, "beside-function", false,
		"apply records only to rules that count by stream position: a Lambda function keeps the others")
	flags.DurationVar(&o.DrainTimeout, "drain-timeout", 0, "with --drain: give up after this `duration` (0: never)")
	flags.StringVar(&o.Listen, "listen", "",
		"serve /metrics, /healthz and /readyz at this `address`, such as 127.0.0.1:9464\n(default: nothing is served)")
	flags.DurationVar(&o.ReadyLag, "ready-lag", status.ReadyLagDefault, "/readyz says no beyond this lag `duration` (0: lag does not count)")
	flags.BoolVar(&o.Profile, "pprof", false, "with --listen: serve /debug/pprof/ too")
	flags.DurationVar(&o.PollInterval, "poll-interval", dynamill.PollIntervalDefault,
		"read an idle shard at least once in this `duration`; a shard with records is read every 250 ms or sooner.\n"+
			"--drain always uses the default")
	flags.IntVar(&o.Budget, "budget", 0,
		"take this many write `units` per second (0: no bound): records are applied at once,\nfan-outs and seeding wait for what is left")
	flags.StringVar(&o.Worker, "worker", "",
		"this process's `name`, which no other that shares the stream may have (default: host and a random part)")
	flags.DurationVar(&o.LeaseTerm, "lease-term", dynamill.LeaseTermDefault,
		"other processes take this process's shards once it has not renewed its leases for this `duration`;\nthey use this value, not their own")
	flags.StringVar(&o.Archive, "archive", "", "keep every record in files in this `folder`, for replays (default: none is kept)")
	flags.BoolVar(&o.ArchiveGzip, "archive-gzip", false, "with --archive: pack the files")
	return command
}
