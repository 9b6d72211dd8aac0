package main

import (
	"github.com/spf13/cobra"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/commandline"
	"github.com/dynamill/dynamill/internal/printable"
)

func (a *app) docsCommand() *cobra.Command {
	command := &cobra.Command{
		Use:     "docs",
		Short:   "Writes man pages or Markdown of all commands",
		Example: "  dynamill docs man ~/.local/share/man/man1",
		Args:    commandline.NoArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, form := range []commandline.PageForm{commandline.ManPages, commandline.MarkdownPages} {
		short := "Writes a " + form.Kind + " page for each command"
		command.AddCommand(&cobra.Command{
			Use:   form.Name + " DIR",
			Short: short,
			Long: short + " into a folder, and makes the folder if it is missing. The same build writes the same files:\n" +
				"a page has a date only if SOURCE_DATE_EPOCH gives one.",
			Example: "  dynamill docs " + form.Name + " ./pages",
			Args:    cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				written, err := form.WriteAll(cmd.Root(), args[0], exitCodeHelp)
				if err == nil {
					a.out.Print("%s written to %s\n", printable.Counted(written, "page"), args[0])
				}
				return err
			},
		})
	}
	return command
}
