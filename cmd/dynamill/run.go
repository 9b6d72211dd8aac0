package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dynamill/dynamill"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/commandline"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/follow"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/status"
)

func addRunFlags(flags *pflag.FlagSet, o *follow.Options) {
	flags.BoolVar(&o.Drain, "drain", false, "end once new rules are seeded and every change up to then is applied")
	flags.DurationVar(&o.DrainTimeout, "drain-timeout", 0, "with --drain: give up after this `duration` (0: never)")
	flags.StringVar(&o.Listen, "listen", "",
		"serve /metrics, /healthz and /readyz at this `address`, such as 127.0.0.1:9464\n(default: nothing is served)")
	flags.DurationVar(&o.ReadyLag, "ready-lag", status.ReadyLagDefault, "/readyz says no beyond this lag `duration` (0: lag does not count)")
	flags.BoolVar(&o.Profile, "pprof", false, "with --listen: serve /debug/pprof/ too")
	flags.IntVar(&o.WriteRateMax, "max-write-rate", 0, "write at most this many write `units` per second (0: no bound)")
	flags.StringVar(&o.Worker, "worker", "",
		"this process's `name`, which no other that shares the stream may have (default: host and a random part)")
	flags.DurationVar(&o.LeaseTerm, "lease-term", dynamill.LeaseTermDefault,
		"after this `duration` the shards of a process that is not heard of go to others;\nothers go by it, whatever theirs is")
	flags.StringVar(&o.Archive, "archive", "", "keep every record in files in this `folder`, for replays (default: none is kept)")
	flags.BoolVar(&o.ArchiveGzip, "archive-gzip", false, "with --archive: pack the files")
}

func (a *app) runCommand() *cobra.Command {
	var options follow.Options
	command := &cobra.Command{
		Use:   "run",
		Short: "Follows the table's stream and keeps what the rules derive true",
		Long: "Follows the table's stream until it is stopped. Several processes may do so at once: they divide the stream's\n" +
			"shards between them, and those of one that dies go to the others after --lease-term. Rules that are new to the\n" +
			"table are seeded from what is in it once what the stream held is applied. Two tables are created where they are\n" +
			"missing: TABLE-dynamill for dynamill's state and TABLE-dynamill-leases for how far the stream is done.\n" +
			"--state-table NAME makes them NAME and NAME-leases.\n\n" +
			"The first SIGINT or SIGTERM stops gracefully: what is in flight is finished and checkpointed. A second one\n" +
			"aborts; whatever a process leaves behind, the next one takes up, and nothing is applied twice.\n\n" +
			"With --listen a state that only a person can end (the table is deleted, its stream disabled or replaced, records\n" +
			"lost) does not end the process: it stays up and says so until it is stopped. docs/operations.md lists the\n" +
			"states and the metrics.\n\n" + commandline.ConfigurationHelp,
		Example: "  dynamill run --table app\n" +
			"  dynamill run --table app --drain --drain-timeout 10m --json\n" +
			"  dynamill run --table app --listen 127.0.0.1:9464 --max-write-rate 500\n" +
			"  dynamill run --table app --endpoint http://localhost:8000",
		Args:    cobra.NoArgs,
		PreRunE: func(cmd *cobra.Command, _ []string) error { return options.Check(cmd.Flags().Changed("drain-timeout")) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			return follow.Run(cmd.Context(), &a.out, &a.settings, options)
		},
	}
	addRunFlags(command.Flags(), &options)
	return command
}
