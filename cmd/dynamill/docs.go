package main

import (
	"github.com/spf13/cobra"

	"github.com/dynamill/dynamill/internal/printable"
)

func (a *app) docsCommand() *cobra.Command {
	command := &cobra.Command{
		Use:     "docs",
		Short:   "Writes man pages or Markdown of all commands",
		Example: "  dynamill docs man ~/.local/share/man/man1",
		Args:    noArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, form := range []pageForm{manPages, markdownPages} {
		short := "Writes a " + form.kind + " page for each command"
		command.AddCommand(&cobra.Command{
			Use:   form.name + " DIR",
			Short: short,
			Long: short + " into a folder, and makes the folder if it is missing. The same build writes the same files:\n" +
				"a page has a date only if SOURCE_DATE_EPOCH gives one.",
			Example: "  dynamill docs " + form.name + " ./pages",
			Args:    cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				written, err := form.writeAll(cmd.Root(), args[0], exitCodeHelp)
				if err == nil {
					a.out.print("%s written to %s\n", printable.Counted(written, "page"), args[0])
				}
				return err
			},
		})
	}
	return command
}
