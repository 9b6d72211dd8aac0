package main

import (
	"github.com/spf13/cobra"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/commandline"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/verifying"
)

func (a *app) verifyCommand() *cobra.Command {
	var o verifying.Options
	command := newCommand("verify", commandline.NoArguments, func(cmd *cobra.Command, _ []string) error {
		return verifying.Run(cmd.Context(), &a.out, &a.settings, o)
	})
	command.PreRunE = func(cmd *cobra.Command, _ []string) error {
		return o.Check(cmd.Flags().Changed("sample-seed"), a.typed)
	}
	flags := command.Flags()
	flags.BoolVar(&o.Repair, "repair", false, "mend what is found, beside live traffic")
	flags.BoolVar(&o.DeleteOrphans, "delete-orphans", false,
		"delete the items that are listed as orphans: their parents are gone, and nothing tells when; it cannot be taken back")
	flags.BoolVar(&o.DryRun, "dry-run", false, "with --delete-orphans: only say how many items it would delete")
	flags.StringArrayVar(&o.Rules, "rule", nil, "judge this rule only, by its `name`; may be given more than once (default: all)")
	flags.StringVar(&o.Sample, "sample", "100%",
		"judge this `share` of the items, sums and mirror items, drawn at random; the tables are read whole all the same")
	flags.Uint64Var(&o.SampleSeed, "sample-seed", 0, "draw the sample that this `number` drew before (default: another one every time)")
	flags.StringVar(&o.Memory, "memory", verifying.MemoryDefault, "take about this `size` of memory; what is more goes to temporary files")
	flags.StringVar(&o.TempDir, "temp-dir", "",
		"the `folder` for temporary files: about 150 bytes for each item and each row of the state table\n(default: the system's)")
	flags.IntVar(&o.Segments, "segments", 4, "scan each table in this `number` of parallel segments")
	flags.Float64Var(&o.ReadRateMax, "read-rate", 0, "scan both tables together with at most this many read `units` per second (0: no bound)")
	flags.IntVar(&o.Budget, "budget", 0, "with --repair: derive items again with at most this many write `units` per second (0: no bound);\n"+
		"sums and state rows are written at once")
	flags.DurationVar(&o.Settle, "settle", verifying.SettleDefault,
		"count a difference as drift only if it stands this `duration`, and the stream does not explain it")
	flags.DurationVar(&o.Wait, "wait", verifying.WaitDefault,
		"wait up to this `duration` for differences that cannot be decided yet, such as until the stream is applied;\n"+
			"the wait ends at once if nothing differs")
	flags.DurationVar(&o.LagMax, "lag-max", 0,
		"count records older than this `duration` as applied; for deployments without a lease table\n"+
			"(0: only a checkpoint shows that a record is applied)")
	flags.IntVar(&o.Limit, "limit", verifying.LimitDefault, "print at most this `number` of differences; with --json all are printed (0: all)")
	return command
}
