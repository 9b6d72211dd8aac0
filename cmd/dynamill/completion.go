package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/projections"
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
	"color":     {colorAuto, colorAlways, colorNever},
	"arch":      {"arm64", "x86_64"},
	"endpoint":  {"http://localhost:8000"},
}

// openChoices are suggestions for flags that take other values, too. Some are only the beginning of a value.
var openChoices = map[string][]string{
	"from":       {fromScan, fromExport, fromS3, fromArchive, fromKeys + "//", fromKeys + "-", fromParked},
	"rules-from": {rulesInZip, rulesInline, "s3://", "ssm:"},
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
				return invalid("name the shell: `dynamill completion bash`, or one of %s", strings.Join(shells, ", "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			out, root := printable.Under(a.stdout), cmd.Root() // a script is data
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
	must(root.RegisterFlagCompletionFunc("table", a.completeTables))
	eachCommand(root, func(cmd *cobra.Command) {
		local := func(flag *pflag.Flag) { a.addFlagCompletion(cmd, flag) }
		cmd.PersistentFlags().VisitAll(local)
		cmd.LocalNonPersistentFlags().VisitAll(local)
		if cmd.ValidArgsFunction != nil || len(cmd.ValidArgs) > 0 {
			return
		}
		switch path := pathBehindRoot(cmd); {
		case path == "check":
			cmd.ValidArgsFunction = cobra.FixedCompletions([]cobra.Completion{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt)
		case path == "explain":
			cmd.ValidArgsFunction = cobra.FixedCompletions([]cobra.Completion{"json", "ndjson", "gz"}, cobra.ShellCompDirectiveFilterFileExt)
		case strings.HasPrefix(path, "docs "):
			cmd.ValidArgsFunction = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
		case path == "parked show", path == "parked retry", path == "parked discard":
			cmd.ValidArgsFunction = a.completeParked
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
		complete = a.completeRules
	case fixedChoices[flag.Name] != nil:
		complete = cobra.FixedCompletions(fixedChoices[flag.Name], cobra.ShellCompDirectiveNoFileComp)
	case openChoices[flag.Name] != nil:
		complete = cobra.FixedCompletions(openChoices[flag.Name], cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace)
	case flag.Name == "rules", flag.Name == "former-rules", flag.Name == configurationFlag:
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

// configured reads environment and configuration file into the flags that are not
// typed, as a start of the command would, and returns a context that ends in time.
func (a *app) configured(cmd *cobra.Command) (ctx context.Context, end context.CancelFunc, ok bool) {
	if configure(cmd, os.Getenv) != nil || a.options.check() != nil {
		return nil, nil, false
	}
	ctx, end = context.WithTimeout(cmd.Context(), completionTimeout)
	return ctx, end, true
}

// offered are the names that begin as typed.
func offered(names []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	unfit := func(name string) bool {
		return !strings.HasPrefix(name, typed) || strings.ContainsFunc(name, func(r rune) bool {
			return unicode.IsSpace(r) || !unicode.IsPrint(r) || strings.ContainsRune("'\"`\\$", r)
		})
	}
	return slices.DeleteFunc(names, unfit), cobra.ShellCompDirectiveNoFileComp
}

// completeTables offers the tables of the account, or of the endpoint. dynamill's own are
// not offered.
func (a *app) completeTables(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, end, ok := a.configured(cmd)
	if !ok {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer end()
	env, err := a.options.connect(ctx, "", slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	pages := dynamodb.NewListTablesPaginator(env.tables, &dynamodb.ListTablesInput{})
	for pages.HasMorePages() && len(names) < completionsMax {
		page, err := pages.NextPage(ctx)
		if err != nil {
			break // what came in time is offered
		}
		names = append(names, page.TableNames...)
	}
	return offered(slices.DeleteFunc(names, func(name string) bool {
		return strings.HasSuffix(name, stateSuffix) || strings.HasSuffix(name, stateSuffix+leasesSuffix)
	}), typed)
}

// completeRules offers the names of the rule file.
func (a *app) completeRules(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	_, end, ok := a.configured(cmd)
	if !ok {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer end()
	set, err := a.options.load()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := make([]string, len(set.Rules))
	for i, rule := range set.Rules {
		names[i] = rule.Name
	}
	return offered(names, typed)
}

var errEnough = errors.New("enough is read")

// completeParked offers the ids of what is parked, if --table or the rule file name the table.
func (a *app) completeParked(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, end, ok := a.configured(cmd)
	if !ok || len(args) > 0 && cmd.Name() == "show" {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer end()
	cmd.SetContext(ctx)
	a.stderr = printable.NewWriter(io.Discard)
	_, parked, err := a.inspectParked(cmd)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var ids []string
	_ = parked.Each(ctx, func(page []projections.Parked) error {
		for _, p := range page {
			if !slices.Contains(args, p.ID) {
				ids = append(ids, p.ID)
			}
		}
		if len(ids) >= completionsMax {
			return errEnough
		}
		return nil
	})
	return offered(ids, typed)
}

// completeCommands offers the commands below those that are typed.
func completeCommands(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	found, rest, err := cmd.Root().Find(args)
	if err != nil || len(rest) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []cobra.Completion
	for _, sub := range found.Commands() {
		if sub.IsAvailableCommand() && strings.HasPrefix(sub.Name(), typed) {
			names = append(names, cobra.CompletionWithDesc(sub.Name(), sub.Short))
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
