// Command dynamill keeps derived data in a DynamoDB single table true.
//
// Its files hold the commands' flags and wiring: plan beside check, docs beside help, every other command in a file of its
// own. What --help says stands in help.txt. What a command does lives in the rooms below internal, which a test can call
// without a process. It may import every room; nothing imports it. Results go to standard output, progress and logs to
// standard error, and the exit code says what kind of ending it was (internal/ending).
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
	if !app.started && !errors.As(err, new(*ending.Failure)) {
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

func (a *app) rootCommand() *cobra.Command {
	help := helpCommand()
	root := newGroup("dynamill", help, a.demoCommand(), a.checkCommand(), a.explainCommand(), a.planCommand(), a.runCommand(),
		a.replayCommand(), a.verifyCommand(), a.statusCommand(), a.parkedCommand(), a.infraCommand(), a.versionCommand(),
		a.completionCommand(), a.docsCommand())
	root.SilenceErrors, root.SilenceUsage = true, true
	root.PersistentPreRunE = a.start
	root.CompletionOptions = cobra.CompletionOptions{DisableDefaultCmd: true}
	root.SetUsageTemplate(root.UsageTemplate() + "\n" + helpText("exit codes") + "\n")
	root.SetFlagErrorFunc(commandline.FlagError)
	commandline.RefuseHelp(root, &a.refusedHelp)
	root.SetHelpCommand(help)
	root.Version = currentBuild().Text()
	root.SetVersionTemplate("{{.Version}}")
	a.addOptions(root.PersistentFlags())
	a.addFlagCompletions(root)
	return root
}

// start reads the flags that the command line does not have, before a command's own code begins.
func (a *app) start(cmd *cobra.Command, _ []string) error {
	if cmd.Name() == cobra.ShellCompRequestCmd {
		return nil // completions read environment and configuration file themselves, in silence
	}
	a.typed = map[string]bool{}
	cmd.Flags().Visit(func(flag *pflag.Flag) { a.typed[flag.Name] = true })
	if err := cmp.Or(commandline.Configure(cmd, os.Getenv), a.checkOptions()); err != nil {
		return err
	}
	a.started = true
	return nil
}

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

func (a *app) checkOptions() error { return cmp.Or(a.out.Check(), a.settings.Check()) }
