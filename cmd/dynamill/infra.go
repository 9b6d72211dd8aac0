package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/commandline"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/template"
	"github.com/dynamill/dynamill/internal/infra"
)

func (a *app) infraCommand() *cobra.Command {
	var o template.Options
	group := newGroup("infra")
	for _, format := range infra.Formats() {
		command := newCommand("infra "+string(format), commandline.NoArguments, func(*cobra.Command, []string) error {
			return template.Write(&a.out, &a.settings, format, o)
		})
		addInfraFlags(command.Flags(), &o)
		group.AddCommand(command)
	}
	// The state machine alone is for users with templates of their own.
	machine := newCommand("infra state-machine", commandline.NoArguments, func(*cobra.Command, []string) error {
		return template.WriteStateMachine(&a.out, &a.settings, o)
	})
	addOutputFlags(machine.Flags(), &o)
	group.AddCommand(machine)
	return group
}

// addOutputFlags adds the flags of every command below `infra`.
func addOutputFlags(flags *pflag.FlagSet, o *template.Options) {
	flags.StringVarP(&o.Output, "output", "o", "", "the `file` to write (default: standard output)")
	flags.IntVar(&o.ReplayConcurrency, "replay-concurrency", infra.DefaultReplayConcurrency,
		"the `number` of a replay's pieces that are worked off at once, up to 1000")
}

func addInfraFlags(flags *pflag.FlagSet, o *template.Options) {
	addOutputFlags(flags, o)
	flags.StringVar(&o.Code, "code", "",
		"SAM and Terraform: the `zip` with the executable bootstrap, and with the rule file (see --rules-from;\n"+
			"default: bin/lambda/dynamill-arm64.zip or, with --arch x86_64, -amd64.zip, as make lambda leaves them)")
	flags.StringVar(&o.RulesFrom, "rules-from", template.RulesInZip,
		"the `place` where the function reads its rules: zip, inline (the template holds them),\n"+
			"s3://BUCKET/KEY or ssm:NAME; filters and permissions follow from --rules all the same")
	flags.StringVar(&o.Former, "former-rules", "",
		"the rule `file` in force, which --rules replaces: the function takes back what the former rules wrote,\n"+
			"so the template grants what that needs")
	flags.StringVar(&o.Architecture, "arch", infra.DefaultArchitecture, "the function's `architecture`: arm64 or x86_64")
	flags.IntVar(&o.MemoryMB, "memory-size", infra.DefaultMemoryMB, "the function's memory in `MB`; more memory is also more CPU")
	flags.DurationVar(&o.Timeout, "timeout", infra.DefaultTimeout, "the `duration` that one invocation may take, up to 15m")
	flags.IntVar(&o.BatchSize, "batch-size", infra.DefaultBatchSize, "the greatest `number` of records of one invocation, up to 10000")
	flags.DurationVar(&o.Window, "window", 0, "the `duration` that a batch may wait to fill, up to 5m; longer is cheaper and lags more")
	flags.IntVar(&o.Parallelization, "parallelization", infra.DefaultParallelization,
		"the `number` of invocations at once for each shard of the stream, up to 10")
	flags.StringVar(&o.AlarmTopic, "alarm-topic", "", "`ARN` of the SNS topic that alarms go to (default: a parameter of the template)")
	flags.IntVar(&o.RetentionDays, "retention", infra.DefaultRetentionDays, "the number of `days` that logs are kept")
	flags.BoolVar(&o.Replay, "replay", false, "add a state machine that replays the table, and the function that it calls")
	flags.StringVar(&o.ReplayExports, "replay-exports", "",
		"the `place` of the exports that replays may read: s3://BUCKET or s3://BUCKET/PREFIX")
	flags.BoolVar(&o.BesideRun, "beside-run", false,
		"leave out the rules that count by stream position: dynamill run --beside-function keeps them")
	flags.BoolVar(&o.KeepStateTable, "keep-state-table", false, "the state table exists: leave it out of the template")
	flags.BoolVar(&o.NoBackups, "no-backups", false, "no point-in-time recovery of the state table")
}
