package main

import (
	_ "embed"
	"strings"
	"text/template"

	"github.com/spf13/cobra"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/commandline"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/internal/story"
)

//go:embed help.txt
var helpFile string

var helpTexts = template.Must(template.New("").Funcs(template.FuncMap{
	"examples": func() string { return strings.Join(story.Names(), ", ") },
}).Parse(helpFile))

// helpText returns a text of help.txt. An unknown name panics; the tests make every command.
func helpText(name string) string {
	var text strings.Builder
	if err := helpTexts.ExecuteTemplate(&text, name, nil); err != nil {
		panic(err)
	}
	return text.String()
}

// newCommand makes a command from its text, which is named by its path behind "dynamill". By default the command
// completes no argument.
func newCommand(path string, args cobra.PositionalArgs, run func(*cobra.Command, []string) error) *cobra.Command {
	use, text, _ := strings.Cut(helpText(path), "\n")
	short, text, _ := strings.Cut(text, "\n\n")
	long, example, _ := strings.Cut(text, "\n\nExamples:\n")
	return &cobra.Command{
		Use: use, Short: short, Long: long, Example: example, Args: args, RunE: run, ValidArgsFunction: cobra.NoFileCompletions,
	}
}

// newGroup makes a command that shows its help, and has commands below it.
func newGroup(path string, commands ...*cobra.Command) *cobra.Command {
	group := newCommand(path, commandline.NoArguments, func(cmd *cobra.Command, _ []string) error { return cmd.Help() })
	group.AddCommand(commands...)
	return group
}

// helpCommand is cobra's help command, except that a command that does not exist is an error.
func helpCommand() *cobra.Command {
	command := newCommand("help", cobra.ArbitraryArgs, func(cmd *cobra.Command, args []string) error {
		found, rest, err := cmd.Root().Find(args)
		if err != nil {
			return commandline.RefusedLine(err)
		}
		if len(rest) > 0 {
			return commandline.NoArguments(found, rest)
		}
		found.InitDefaultHelpFlag()
		found.InitDefaultVersionFlag()
		return found.Help()
	})
	command.ValidArgsFunction = completeCommands
	// The help of a command needs neither configuration nor environment.
	command.PersistentPreRunE = func(*cobra.Command, []string) error { return nil }
	return command
}

func completeCommands(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	found, rest, err := cmd.Root().Find(args)
	if err != nil || len(rest) > 0 {
		return nil, choice
	}
	var names []cobra.Completion
	for _, sub := range found.Commands() {
		if sub.IsAvailableCommand() && strings.HasPrefix(sub.Name(), typed) {
			names = append(names, cobra.CompletionWithDesc(sub.Name(), sub.Short))
		}
	}
	return names, choice
}

func (a *app) docsCommand() *cobra.Command {
	group := newGroup("docs")
	for _, form := range []commandline.PageForm{commandline.ManPages, commandline.MarkdownPages} {
		command := newCommand("docs "+form.Name, commandline.Arguments(1, 1), func(cmd *cobra.Command, args []string) error {
			written, err := form.WriteAll(cmd.Root(), args[0], helpText("exit codes"))
			if err == nil {
				a.out.Print("%s written to %s\n", printable.Counted(written, "page"), args[0])
			}
			return err
		})
		command.ValidArgsFunction = offer(folders)
		group.AddCommand(command)
	}
	return group
}
