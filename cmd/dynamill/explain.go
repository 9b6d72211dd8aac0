package main

import (
	"github.com/spf13/cobra"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/commandline"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/explain"
)

func (a *app) explainCommand() *cobra.Command {
	command := newCommand("explain", commandline.Arguments(1, 1), func(_ *cobra.Command, args []string) error {
		return explain.Run(&a.out, &a.settings, args[0])
	})
	command.ValidArgsFunction = filesOf("json", "ndjson", "gz")
	return command
}
