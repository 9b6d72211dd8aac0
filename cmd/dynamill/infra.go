package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/progress"
	"github.com/dynamill/dynamill/infra"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/rules"
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

// infraFlags are the flags of `infra`.
type infraFlags struct {
	options   infra.Options
	rulesFrom string
	former    string
	output    string
}

// Values of --rules-from that name no place of their own.
const (
	rulesInZip  = "zip"
	rulesInline = "inline"
)

func (a *app) infraCommand() *cobra.Command {
	var flags infraFlags
	command := &cobra.Command{
		Use:     "infra",
		Short:   "Writes a template that deploys the rules on AWS Lambda",
		Long:    infraHelp,
		Example: infraExamples,
		Args:    noArguments,
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
			RunE:    func(*cobra.Command, []string) error { return a.writeTemplate(one.format, flags) },
		}
		flags.addTo(sub.Flags())
		command.AddCommand(sub)
	}
	command.AddCommand(a.stateMachineCommand())
	return command
}

// stateMachineCommand is for users with templates of their own.
func (a *app) stateMachineCommand() *cobra.Command {
	var flags infraFlags
	command := &cobra.Command{
		Use:   "state-machine",
		Short: "Writes the definition of a replay's state machine alone",
		Long: "Writes the definition of the state machine that --replay adds to a template, in the Amazon States Language.\n" +
			"In it, ${ReplayFunctionArn} stands for the ARN of a function with dynamill, a timeout of 15 minutes and the\n" +
			"permissions that a template gives it, and ${Partition} for aws, aws-cn or aws-us-gov.",
		Example: "  dynamill infra state-machine --table app --replay-concurrency 64 -o replay.asl.json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, table, err := a.options.loadForTable()
			if err != nil {
				return err
			}
			flags.options.Table = table
			if flags.options.ReplayConcurrency == 0 {
				return invalid("--replay-concurrency cannot be 0")
			}
			definition, err := infra.Definition(flags.options)
			if err != nil {
				return invalid("%w", err)
			}
			return a.writeOut(flags.output, definition)
		},
	}
	command.Flags().StringVarP(&flags.output, "output", "o", "", "the `file` to write (default: standard output)")
	flags.addConcurrency(command.Flags())
	return command
}

func (f *infraFlags) addConcurrency(flags *pflag.FlagSet) {
	flags.IntVar(&f.options.ReplayConcurrency, "replay-concurrency", infra.DefaultReplayConcurrency, "the `number` of a replay's pieces that are worked off at once, up to 1000")
}

func (f *infraFlags) addTo(flags *pflag.FlagSet) {
	o := &f.options
	flags.StringVarP(&f.output, "output", "o", "", "the `file` to write (default: standard output)")
	flags.StringVar(&o.Code, "code", "", "SAM and Terraform: the `zip` with the executable bootstrap, and with the rule file (see --rules-from;\n"+
		"default: bin/lambda/dynamill-arm64.zip or, with --arch x86_64, -amd64.zip, as make lambda leaves them)")
	flags.StringVar(&f.rulesFrom, "rules-from", rulesInZip, "the `place` where the function reads its rules: zip, inline (the template holds them),\n"+
		"s3://BUCKET/KEY or ssm:NAME; filters and permissions follow from --rules all the same")
	flags.StringVar(&f.former, "former-rules", "", "the rule `file` in force, which --rules replaces: the function takes back what it wrote, and needs its permissions")
	flags.StringVar(&o.Architecture, "arch", infra.DefaultArchitecture, "the function's `architecture`: arm64 or x86_64")
	flags.IntVar(&o.MemoryMB, "memory-size", infra.DefaultMemoryMB, "the function's memory in `MB`; more memory is also more CPU")
	flags.DurationVar(&o.Timeout, "timeout", infra.DefaultTimeout, "the `duration` that one invocation may take, up to 15m")
	flags.IntVar(&o.BatchSize, "batch-size", infra.DefaultBatchSize, "the greatest `number` of records of one invocation, up to 10000")
	flags.DurationVar(&o.Window, "window", 0, "the `duration` that a batch may wait to fill, up to 5m; longer is cheaper and lags more")
	flags.IntVar(&o.Parallelization, "parallelization", infra.DefaultParallelization, "the `number` of invocations at once for each shard of the stream, up to 10")
	flags.StringVar(&o.AlarmTopic, "alarm-topic", "", "`ARN` of the SNS topic that alarms go to (default: a parameter of the template)")
	flags.IntVar(&o.RetentionDays, "retention", infra.DefaultRetentionDays, "the number of `days` that logs are kept")
	flags.BoolVar(&o.Replay, "replay", false, "add a state machine that replays the table, and the function that it calls")
	f.addConcurrency(flags)
	flags.StringVar(&o.ReplayExports, "replay-exports", "", "the `place` of the exports that replays may read: s3://BUCKET or s3://BUCKET/PREFIX")
	flags.BoolVar(&o.KeepStateTable, "keep-state-table", false, "the state table exists: leave it out of the template")
	flags.BoolVar(&o.NoBackups, "no-backups", false, "no point-in-time recovery of the state table")
}

func (a *app) writeTemplate(format infra.Format, flags infraFlags) error {
	set, table, err := a.options.loadForTable()
	if err != nil {
		return err
	}
	o := flags.options
	o.Table, o.StateTable, o.RulesFile = table, a.options.stateTable, filepath.Base(a.options.rules)
	if a.options.rules == standardInput {
		o.RulesFile = ruleFileDefault
	}
	if o.RulesFrom, err = rulesFrom(flags.rulesFrom, set); err != nil {
		return err
	}
	if flags.former != "" {
		if o.Former, err = a.options.loadFormer("--former-rules", flags.former); err != nil {
			return err
		}
	}
	if format == infra.CloudFormation && o.Code != "" {
		return invalid("--code has no meaning for cloudformation: its template has parameters for where the zip is, CodeBucket and CodeKey")
	}
	if o.ReplayExports != "" && !o.Replay {
		return invalid("--replay-exports has no meaning without --replay")
	}
	if zero := flags.zero(); len(zero) > 0 {
		return invalid("%s cannot be 0", strings.Join(zero, " and "))
	}
	template, err := infra.Generate(format, set, o)
	if err != nil {
		return invalid("%w", err)
	}
	return a.writeOut(flags.output, template)
}

// writeOut writes to a file, or to standard output if none is named.
func (a *app) writeOut(file string, text []byte) error {
	if file == "" {
		if progress.IsTerminal(a.stdout) {
			return a.printText(string(text))
		}
		return writeText(printable.Under(a.stdout), string(text)) // a template is data
	}
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return fmt.Errorf("writing the template: %w", err)
	}
	return nil
}

// zero names the flags that are 0, which the library takes for their defaults.
func (f *infraFlags) zero() (names []string) {
	for _, flag := range []struct {
		name string
		zero bool
	}{
		{"--memory-size", f.options.MemoryMB == 0},
		{"--timeout", f.options.Timeout == 0},
		{"--batch-size", f.options.BatchSize == 0},
		{"--parallelization", f.options.Parallelization == 0},
		{"--retention", f.options.RetentionDays == 0},
		{"--replay-concurrency", f.options.ReplayConcurrency == 0},
	} {
		if flag.zero {
			names = append(names, flag.name)
		}
	}
	return names
}

// rulesFrom says to the library what --rules-from means.
func rulesFrom(flag string, set *rules.Set) (string, error) {
	switch {
	case flag == rulesInZip:
		return "", nil
	case flag == rulesInline:
		return strings.TrimRight(set.Text(), "\n") + "\n", nil // by its line break the function knows it from a name
	case strings.HasPrefix(flag, "s3://"), strings.HasPrefix(flag, "ssm:"):
		if !strings.ContainsFunc(flag, unicode.IsControl) {
			return flag, nil
		}
	}
	return "", invalid("--rules-from %q is none of zip, inline, s3://BUCKET/KEY and ssm:NAME", flag)
}
