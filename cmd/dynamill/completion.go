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
	"github.com/dynamill/dynamill/cmd/dynamill/internal/template"
	"github.com/dynamill/dynamill/internal/printable"
)

const (
	completionTimeout = 2 * time.Second // a shell waits for it
	completionsMax    = 500
)

// A completion returns the words that a shell offers. If it fails, it returns none and prints nothing.
type completion = func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective)

// fixedChoices are the values of flags that take one of a few.
var fixedChoices = map[string][]string{
	"log-level": {"debug", "info", "warn", "error"},
	"color":     {output.ColorAuto, output.ColorAlways, output.ColorNever},
	"arch":      {"arm64", "x86_64"},
	"endpoint":  {"http://localhost:8000"},
}

// openChoices are suggestions for flags that take other values, too. Some are only the beginning of a value.
var openChoices = map[string][]string{
	"from": {replaying.FromScan, replaying.FromExport, replaying.FromS3, replaying.FromArchive, replaying.FromKeys + "//",
		replaying.FromKeys + "-", replaying.FromParked},
	"rules-from": {template.RulesInZip, template.RulesInline, "s3://", "ssm:"},
}

func (a *app) completionCommand() *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion {bash | zsh | fish | powershell}",
		Short: "Writes a script with which a shell completes commands, flags, tables and rules",
		Long: "Writes the script to standard output. To load it in every new shell:\n\n" +
			"    bash  dynamill completion bash > ~/.local/share/bash-completion/completions/dynamill\n" +
			"    zsh   dynamill completion zsh > \"${fpath[1]}/_dynamill\"\n" +
			"    fish  dynamill completion fish > ~/.config/fish/completions/dynamill.fish\n\n" +
			"bash needs the package bash-completion, zsh `autoload -U compinit; compinit` in ~/.zshrc. Names of tables come from\n" +
			"ListTables, within two seconds, with the --endpoint and --region that are typed or set; names of rules from the rule file.",
		Example:   "  source <(dynamill completion bash)",
		ValidArgs: shells,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains(shells, args[0]) {
				return ending.Invalid("name the shell: `dynamill completion bash`, or one of %s", strings.Join(shells, ", "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
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
		},
	}
}

// addCompletions tells every command and flag what completes it. By default a flag is
// completed with files only if its value is one.
func (a *app) addCompletions(root *cobra.Command) {
	must(root.RegisterFlagCompletionFunc("table", a.offering(a.tableNames)))
	commandline.EachCommand(root, func(cmd *cobra.Command) {
		local := func(flag *pflag.Flag) { a.addFlagCompletion(cmd, flag) }
		cmd.PersistentFlags().VisitAll(local)
		cmd.LocalNonPersistentFlags().VisitAll(local)
		if cmd.ValidArgsFunction != nil || len(cmd.ValidArgs) > 0 {
			return
		}
		switch path := commandline.PathBehindRoot(cmd); {
		case path == "check":
			cmd.ValidArgsFunction = cobra.FixedCompletions([]cobra.Completion{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt)
		case path == "explain":
			cmd.ValidArgsFunction = cobra.FixedCompletions([]cobra.Completion{"json", "ndjson", "gz"}, cobra.ShellCompDirectiveFilterFileExt)
		case strings.HasPrefix(path, "docs "):
			cmd.ValidArgsFunction = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
		case path == "parked show", path == "parked retry", path == "parked discard":
			cmd.ValidArgsFunction = a.offering(a.parkedIDs)
		default:
			cmd.ValidArgsFunction = cobra.NoFileCompletions
		}
	})
}

func (a *app) addFlagCompletion(cmd *cobra.Command, flag *pflag.Flag) {
	if _, known := cmd.GetFlagCompletionFunc(flag.Name); known {
		return
	}
	var complete completion = cobra.NoFileCompletions
	value, _ := pflag.UnquoteUsage(flag)
	switch {
	case flag.Name == "rule":
		complete = a.offering(a.ruleNames)
	case fixedChoices[flag.Name] != nil:
		complete = cobra.FixedCompletions(fixedChoices[flag.Name], cobra.ShellCompDirectiveNoFileComp)
	case openChoices[flag.Name] != nil:
		complete = cobra.FixedCompletions(openChoices[flag.Name], cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace)
	case flag.Name == "rules", flag.Name == "former-rules", flag.Name == commandline.ConfigurationFlag:
		complete = cobra.FixedCompletions([]cobra.Completion{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt)
	case value == "folder":
		complete = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
	case value == "file", value == "zip":
		return // any file
	}
	must(cmd.RegisterFlagCompletionFunc(flag.Name, complete))
}

// must ends the program if a completion is registered twice. A test of the command line would fail first.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// offering completes with names that are found in time, with the flags as a start of the command would have them.
func (a *app) offering(find func(ctx context.Context, cmd *cobra.Command, args []string) []string) completion {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if commandline.Configure(cmd, os.Getenv) != nil || a.checkOptions() != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, end := context.WithTimeout(cmd.Context(), completionTimeout)
		defer end()
		a.out.Stderr = printable.NewWriter(io.Discard)
		return commandline.Offered(find(ctx, cmd, args), typed), cobra.ShellCompDirectiveNoFileComp
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

// ruleNames are the names of the rule file.
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
