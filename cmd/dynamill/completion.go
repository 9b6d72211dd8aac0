package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/commandline"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/environment"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/output"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/parked"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/replaying"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/session"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/settings"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/template"
	"github.com/dynamill/dynamill/internal/printable"
)

const (
	completionTimeout = 2 * time.Second // a shell waits for it
	completionsMax    = 500
)

// A completion returns the words that a shell offers. If it fails, it returns none and prints nothing.
type completion = func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective)

const (
	choice     = cobra.ShellCompDirectiveNoFileComp       // of a few values
	beginnings = choice | cobra.ShellCompDirectiveNoSpace // values some of which are only the beginning of one
	filesOf    = cobra.ShellCompDirectiveFilterFileExt    // with these endings
	folders    = cobra.ShellCompDirectiveFilterDirs
	anyFile    = cobra.ShellCompDirectiveDefault
)

// offer completes with values that are always the same.
func offer(directive cobra.ShellCompDirective, values ...string) completion {
	return cobra.FixedCompletions(values, directive)
}

func (a *app) completionCommand() *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	shell := func(_ *cobra.Command, args []string) error {
		if len(args) != 1 || !slices.Contains(shells, args[0]) {
			return ending.Invalid("name the shell: `dynamill completion bash`, or one of %s", strings.Join(shells, ", "))
		}
		return nil
	}
	command := newCommand("completion", shell, func(cmd *cobra.Command, args []string) error {
		out, root := printable.Under(a.out.Stdout), cmd.Root() // a script is data
		var err error
		switch args[0] {
		case "bash":
			err = root.GenBashCompletionV2(out, true)
		case "zsh":
			err = root.GenZshCompletion(out)
		case "fish":
			err = root.GenFishCompletion(out, true)
		default:
			err = root.GenPowerShellCompletionWithDesc(out)
		}
		if err != nil {
			return fmt.Errorf("writing the script: %w", err)
		}
		return nil
	})
	command.ValidArgs = shells
	return command
}

func (a *app) addFlagCompletions(root *cobra.Command) {
	for _, cmd := range commandline.Commands(root) {
		register := func(flag *pflag.Flag) {
			if err := cmd.RegisterFlagCompletionFunc(flag.Name, a.flagCompletion(flag)); err != nil {
				panic(err) // it is registered twice; every test of the command line would fail
			}
		}
		cmd.PersistentFlags().VisitAll(register)
		cmd.LocalNonPersistentFlags().VisitAll(register)
	}
}

// flagCompletion returns the completion of a flag. By default a flag is completed with files only if its value is one.
func (a *app) flagCompletion(flag *pflag.Flag) completion {
	switch flag.Name {
	case "table":
		return a.offerFound(a.tableNames)
	case "rule":
		return a.offerFound(a.ruleNames)
	case "log-level":
		return offer(choice, "debug", "info", "warn", "error")
	case "color":
		return offer(choice, output.ColorAuto, output.ColorAlways, output.ColorNever)
	case "arch":
		return offer(choice, "arm64", "x86_64")
	case "endpoint":
		return offer(choice, "http://localhost:8000")
	case "from":
		return offer(beginnings, replaying.FromScan, replaying.FromExport, replaying.FromS3, replaying.FromArchive, replaying.FromKeys+"//",
			replaying.FromKeys+"-", replaying.FromParked)
	case "rules-from":
		return offer(beginnings, template.RulesInZip, template.RulesInline, "s3://", "ssm:")
	case "rules", "former-rules", commandline.ConfigurationFlag:
		return offer(filesOf, "yaml", "yml")
	}
	switch value, _ := pflag.UnquoteUsage(flag); value {
	case "folder":
		return offer(folders)
	case "file", "zip":
		return offer(anyFile)
	}
	return cobra.NoFileCompletions
}

// offerFound completes with names that find returns in time. It sets the flags as a run of the command would.
func (a *app) offerFound(find func(ctx context.Context, cmd *cobra.Command, args []string) []string) completion {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if commandline.Configure(cmd, os.Getenv) != nil || a.checkOptions() != nil {
			return nil, choice
		}
		ctx, end := context.WithTimeout(cmd.Context(), completionTimeout)
		defer end()
		a.out.Stderr = printable.NewWriter(io.Discard)
		if a.settings.Rules == settings.StandardInput { // standard input belongs to the shell
			a.settings.Rules = os.DevNull
		}
		return commandline.Offered(find(ctx, cmd, args), typed), choice
	}
}

// tableNames are the tables of the account, or of the endpoint.
func (a *app) tableNames(ctx context.Context, _ *cobra.Command, _ []string) []string {
	env, err := environment.Connect(ctx, &a.settings, "", slog.New(slog.DiscardHandler))
	if err != nil {
		return nil
	}
	return env.TableNames(ctx, completionsMax)
}

func (a *app) ruleNames(context.Context, *cobra.Command, []string) []string {
	set, err := a.settings.Load()
	if err != nil {
		return nil
	}
	return session.RuleNames(set)
}

// parkedIDs are the ids of what is parked and is not typed yet, if --table or the rule file name the table.
func (a *app) parkedIDs(ctx context.Context, cmd *cobra.Command, args []string) []string {
	if len(args) > 0 && cmd.Name() == "show" {
		return nil
	}
	ids := parked.IDs(ctx, &a.out, &a.settings, cmd.Flags().Changed("rules"), completionsMax)
	return slices.DeleteFunc(ids, func(id string) bool { return slices.Contains(args, id) })
}
