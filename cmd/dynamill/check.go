package main

import (
	"github.com/spf13/cobra"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/preview"
)

func (a *app) checkCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check [FILE]",
		Short: "Checks the rule file and says what each rule costs",
		Long: "Reports every problem of the rule file at once, each with its place and a hint, and ends with exit code 2.\n" +
			"A file without problems gives a table of its rules: what each reads, what it writes, and what it costs per\n" +
			"change in write units (WU), for items of up to 1 KB. Warnings go to standard error and leave the exit code at 0.\n" +
			"The file is FILE, or that of --rules; - reads standard input. Nothing is read from or written to AWS.\n\n" +
			"With --table on the command line, check also reads a sample of the table: its key schema, and up to 1,000\n" +
			"items from all over it, for at most 8,192 read units. It says how many of them are of each entity, shows\n" +
			"keys of items that are of none, and warns of each entity of the rules that no item is of. It writes nothing.",
		Example: "  dynamill check\n  dynamill check blog/dynamill.yaml --json\n  dynamill check --table app",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.nameRules(args); err != nil {
				return err
			}
			// A table of the environment or a file does not make check connect.
			return preview.Check(cmd.Context(), &a.out, &a.settings, a.typed["table"])
		},
	}
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
