package main

import (
	"github.com/spf13/cobra"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/commandline"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/preview"
)

func (a *app) checkCommand() *cobra.Command {
	command := newCommand("check", commandline.Arguments(0, 1), func(cmd *cobra.Command, args []string) error {
		if err := a.nameRules(args); err != nil {
			return err
		}
		// A table of the environment or a file does not make check connect.
		return preview.Check(cmd.Context(), &a.out, &a.settings, a.typed["table"])
	})
	command.ValidArgsFunction = offer(filesOf, "yaml", "yml")
	return command
}

// nameRules takes the rule file that stands on the command line without a flag.
func (a *app) nameRules(args []string) error {
	if len(args) == 0 {
		return nil
	}
	if a.typed["rules"] && a.settings.Rules != args[0] {
		return ending.Invalid("two rule files are given, %s and --rules %s: give one", args[0], a.settings.Rules)
	}
	a.settings.Rules = args[0]
	return nil
}

func (a *app) planCommand() *cobra.Command {
	return newCommand("plan", commandline.NoArguments, func(cmd *cobra.Command, _ []string) error {
		return preview.ShowPlan(cmd.Context(), &a.out, &a.settings)
	})
}
