package main

import (
	"github.com/spf13/cobra"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/commandline"
	"github.com/dynamill/dynamill/internal/printable"
)

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
