// Command dynamill keeps derived data in a DynamoDB single table true.
//
// It wires the rooms together and holds none of their logic: rules (the rule
// file), projections (the engine), streamreader (the stream) and, for `demo`,
// the simulated DynamoDB. It may import every room; nothing imports it. Results
// go to standard output, progress and logs to standard error, and the exit code
// says what kind of ending it was (failure.go).
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func main() {
	os.Exit(execute(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// execute runs one command line and returns its exit code.
func execute(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	app := &app{stdin: stdin, stdout: stdout, stderr: stderr}
	root := app.rootCommand()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	if !app.started {
		// cobra refused the command line itself: a flag, an argument, a command that does not exist.
		err = invalid("%w; `dynamill --help` lists commands and flags", err)
	}
	return report(stderr, err)
}

// app is one call of the command: its streams and its flags.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	started        bool            // a command's own code has begun
	typed          map[string]bool // flags that stand on the command line itself
	options        options
}

const longHelp = `dynamill keeps derived data in a DynamoDB single table true.

You declare in one rule file which attributes are copies, which are counts and
sums, and which items mirror others. dynamill follows the table's stream and
keeps them in step with their sources: after renames, deletes, duplicates,
crashes and restarts.`

const rootExamples = `  dynamill demo                                  # see it work, in memory, without AWS
  dynamill check                                 # is dynamill.yaml right, and what does each rule cost?
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
`

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "dynamill",
		Short:         "Keeps derived data in a DynamoDB single table true",
		Long:          longHelp,
		Example:       rootExamples,
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			a.typed = map[string]bool{}
			cmd.Flags().Visit(func(flag *pflag.Flag) { a.typed[flag.Name] = true })
			if err := configure(cmd, os.Getenv); err != nil {
				return err
			}
			if err := a.options.check(); err != nil {
				return err
			}
			a.started = true
			return nil
		},
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.SetUsageTemplate(root.UsageTemplate() + exitCodeHelp)
	addVersionFlag(root)
	a.options.addTo(root.PersistentFlags())
	root.AddCommand(a.demoCommand(), a.checkCommand(), a.explainCommand(), a.planCommand(), a.runCommand(), a.replayCommand(), a.verifyCommand(), a.statusCommand(), a.parkedCommand(), a.infraCommand(), a.versionCommand())
	return root
}

// print writes a result to standard output.
func (a *app) print(format string, args ...any) error {
	if _, err := fmt.Fprintf(a.stdout, format, args...); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}
