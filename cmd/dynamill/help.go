package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/commandline"
)

// helpCommand is cobra's help command, except that a command that does not exist is an error.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND...]",
		Short: "Shows the help of a command",
		Long:  "Shows the help of a command, as --help behind it does.\n\n" + commandline.Offline("nothing", "nothing").Text(),
		Example: "  dynamill help run\n" +
			"  dynamill help parked retry",
		ValidArgsFunction: completeCommands,
		// The help of a command needs neither configuration nor environment.
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		RunE: func(cmd *cobra.Command, args []string) error {
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
		},
	}
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
