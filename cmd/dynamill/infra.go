package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/commandline"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/template"
	"github.com/dynamill/dynamill/internal/infra"
)

const infraHelp = "Writes, from the rule file, a template that runs dynamill on AWS Lambda.\n\n" + infraParts

const infraParts = `It holds

- the function (provided.al2023), and its mapping on the table's stream, with filters derived from the rules' keys,
  so that records that concern no rule invoke nothing;
- permissions of just what these rules need;
- the state table, a bucket for late batches (those that Lambda gave up), a schedule for durable tasks, alarms, a dashboard;
- with --replay, a state machine of Step Functions that replays the table, and a function that it calls.

The stream's ARN is a parameter of the template. Nothing is read from or written to AWS. Make the template anew when
the rules change: filters and permissions follow from them. docs/lambda.md goes through it, step by step.`

const infraExamples = `  dynamill infra sam --table app -o template.yaml             # then: sam deploy --guided
  dynamill infra terraform --table app -o dynamill.tf         # then: terraform apply -var stream_arn=...
  dynamill infra cloudformation --table app --batch-size 100 --window 1s --parallelization 4
  dynamill infra sam --table app --rules-from ssm:/app/rules  # the function reads its rules there, not in the zip
  dynamill infra sam --table app --replay                     # then: aws stepfunctions start-execution ... --input '{}'
  dynamill infra state-machine --table app                    # its definition alone
  dynamill infra sam --table app --keep-state-table           # where dynamill run has made the state table already`

func (a *app) infraCommand() *cobra.Command {
	var o template.Options
	command := &cobra.Command{
		Use:     "infra",
		Short:   "Writes a template that deploys the rules on AWS Lambda",
		Long:    infraHelp,
		Example: infraExamples,
		Args:    commandline.NoArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, one := range []struct {
		format         infra.Format
		short, example string
	}{
		{infra.SAM, "as a template of AWS SAM: sam deploy uploads the function's zip itself",
			"  dynamill infra sam --table app -o template.yaml\n  sam deploy --guided --capabilities CAPABILITY_IAM"},
		{infra.CloudFormation, "as a template of CloudFormation: the function's zip lies in S3",
			"  dynamill infra cloudformation --table app --batch-size 100 --window 1s -o template.yaml"},
		{infra.Terraform, "as a configuration of Terraform or OpenTofu",
			"  dynamill infra terraform --table app -o dynamill.tf\n  terraform apply -var stream_arn=..."},
	} {
		sub := &cobra.Command{
			Use:     string(one.format),
			Short:   "Writes the deployment " + one.short,
			Long:    "Writes the deployment " + one.short + ".\n\n" + infraParts,
			Example: one.example,
			Args:    cobra.NoArgs,
			RunE:    func(*cobra.Command, []string) error { return template.Write(&a.out, &a.settings, one.format, o) },
		}
		addInfraFlags(sub.Flags(), &o)
		command.AddCommand(sub)
	}
	command.AddCommand(a.stateMachineCommand())
	return command
}

// stateMachineCommand is for users with templates of their own.
func (a *app) stateMachineCommand() *cobra.Command {
	var o template.Options
	command := &cobra.Command{
		Use:   "state-machine",
		Short: "Writes the definition of a replay's state machine alone",
		Long: "Writes the definition of the state machine that --replay adds to a template, in the Amazon States Language.\n" +
			"In it, ${ReplayFunctionArn} stands for the ARN of a function with dynamill, a timeout of 15 minutes and the\n" +
			"permissions that a template gives it, and ${Partition} for aws, aws-cn or aws-us-gov.",
		Example: "  dynamill infra state-machine --table app --replay-concurrency 64 -o replay.asl.json",
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return template.WriteStateMachine(&a.out, &a.settings, o) },
	}
	addOutputFlags(command.Flags(), &o)
	return command
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
		"the rule `file` in force, which --rules replaces: the function takes back what it wrote, and needs its permissions")
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
	flags.BoolVar(&o.KeepStateTable, "keep-state-table", false, "the state table exists: leave it out of the template")
	flags.BoolVar(&o.NoBackups, "no-backups", false, "no point-in-time recovery of the state table")
}
