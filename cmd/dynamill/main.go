// Command dynamill keeps derived data in a DynamoDB single table true.
//
// It has one file for each command: flags, texts and wiring. What a command does lives in the rooms below
// internal, which a test can call without a process. It may import every room; nothing imports it. Results
// go to standard output, progress and logs to standard error, and the exit code says what kind of ending it
// was (internal/ending).
package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/commandline"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/output"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/settings"
	"github.com/dynamill/dynamill/internal/printable"
)

func main() {
	os.Exit(execute(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// execute runs one command line and returns its exit code.
func execute(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	app := &app{settings: settings.Settings{Stdin: stdin}, out: output.Output{Stdout: printable.NewWriter(stdout),
		Stderr: printable.NewWriter(stderr)}}
	root := app.rootCommand()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(app.out.Stdout)
	root.SetErr(app.out.Stderr)
	err := root.ExecuteContext(ctx)
	err = cmp.Or(app.out.Failed, err, app.refusedHelp)
	if err == nil {
		return ending.ExitDone
	}
	var known *ending.Failure
	if !app.started && !errors.As(err, &known) {
		err = commandline.RefusedLine(ending.LaidOut{Err: err}) // cobra refused the command line itself
	}
	return app.out.Report(err)
}

// app is one call of the command: its streams and its flags.
type app struct {
	out         output.Output
	settings    settings.Settings
	started     bool            // a command's own code has begun
	refusedHelp error           // of --help behind a command line that cannot be used
	typed       map[string]bool // flags that stand on the command line itself
}

const longHelp = `dynamill keeps derived data in a DynamoDB single table true.

You declare in one rule file which attributes are copies, which are counts and
sums, and which items mirror others. dynamill follows the table's stream and
keeps them in step with their sources: after renames, deletes, duplicates,
crashes and restarts.`

const rootExamples = `  dynamill demo                                  # see it work, in memory, without AWS
  dynamill check                                 # is dynamill.yaml right, and what does each rule cost?
  dynamill check --table app                     # which items of the table are of which entity?
  dynamill run --table app                       # follow the stream until stopped
  dynamill run --table app --drain               # catch up with the stream, then end
  dynamill plan --table app                      # what would a changed rule file do to the table?
  dynamill replay --table app                    # apply the rules to what is in the table already
  dynamill verify --table app                    # is everything derived what it should be?
  dynamill run --table app --endpoint http://localhost:8000`

const exitCodeHelp = `
Exit codes:
  0  done
  1  failed while running
  2  invalid input: rules, flags or arguments
  3  environment: no table, no stream, no credentials, no permission, endpoint not reachable
  4  drift found
  5  undecided: verify proved no drift, and could not compare everything
`

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "dynamill",
		Short:         "Keeps derived data in a DynamoDB single table true",
		Long:          longHelp,
		Example:       rootExamples,
		Args:          commandline.NoArguments,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Name() == cobra.ShellCompRequestCmd {
				return nil // completions read environment and configuration file themselves, in silence
			}
			a.typed = map[string]bool{}
			cmd.Flags().Visit(func(flag *pflag.Flag) { a.typed[flag.Name] = true })
			if err := commandline.Configure(cmd, os.Getenv); err != nil {
				return err
			}
			if err := a.checkOptions(); err != nil {
				return err
			}
			a.started = true
			return nil
		},
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetUsageTemplate(root.UsageTemplate() + exitCodeHelp)
	root.SetFlagErrorFunc(commandline.FlagError)
	commandline.RefuseHelp(root, &a.refusedHelp)
	help := helpCommand()
	root.SetHelpCommand(help)
	root.AddCommand(help)
	addVersionFlag(root)
	a.addOptions(root.PersistentFlags())
	root.AddCommand(a.demoCommand(), a.checkCommand(), a.explainCommand(), a.planCommand(), a.runCommand(), a.replayCommand(),
		a.verifyCommand(), a.statusCommand(), a.parkedCommand(), a.infraCommand(), a.versionCommand(), a.completionCommand(), a.docsCommand())
	commandline.EachCommand(root, func(cmd *cobra.Command) {
		if cmd.Args != nil {
			cmd.Args = commandline.PlainArguments(cmd.Args)
		}
	})
	commandline.AddCosts(root, costs)
	a.addCompletions(root)
	return root
}

// addOptions adds the flags that mean the same in every command.
func (a *app) addOptions(flags *pflag.FlagSet) {
	s, o := &a.settings, &a.out
	flags.String(commandline.ConfigurationFlag, "",
		"a YAML `file` of flags that neither the command line nor the environment gives\n(default: $"+
			commandline.VariableOf(commandline.ConfigurationFlag)+")")
	flags.StringVar(&s.Rules, "rules", settings.RuleFileDefault, "the rule `file`; - reads standard input")
	flags.StringVar(&s.Table, "table", "", "the table's `name` (default: table.name in the rule file)")
	flags.StringVar(&s.StateTable, "state-table", "",
		"the `name` of the table for dynamill's own state (default: TABLE-dynamill); the lease table\nhas this name with -leases behind it")
	flags.StringVar(&s.Endpoint, "endpoint", "", "`URL` of DynamoDB and its streams, instead of AWS's own; on a loopback\n"+
		"address local dummy credentials and region us-east-1 stand in where none are set,\nso that DynamoDB Local just works")
	flags.StringVar(&s.Region, "region", "", "the AWS `region` (default: that of the AWS configuration)")
	flags.BoolVar(&o.JSON, "json", false, "write results and logs as JSON")
	flags.StringVar(&o.LogLevel, "log-level", "info", "the least `level` that is logged: debug, info, warn or error")
	flags.StringVar(&o.Color, "color", output.ColorAuto,
		"`when` to colour: auto (on a terminal, unless NO_COLOR is set or TERM is dumb), always or never;\nstandard output and standard error "+
			"each for itself")
}

// checkOptions refuses values that no command could use.
func (a *app) checkOptions() error { return cmp.Or(a.out.Check(), a.settings.Check()) }
