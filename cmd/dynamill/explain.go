package main

import (
	"github.com/spf13/cobra"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/commandline"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/explain"
)

func (a *app) explainCommand() *cobra.Command {
	var key string
	command := newCommand("explain", commandline.Arguments(0, 1), func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return explain.Item(cmd.Context(), &a.out, &a.settings, key)
		}
		return explain.Run(&a.out, &a.settings, args[0])
	})
	command.PreRunE = func(cmd *cobra.Command, args []string) error { // by now environment and file have said what --key is
		if cmd.Flags().Changed("key") == (len(args) > 0) {
			return ending.Invalid("give either a file of stream records or the --key of an item")
		}
		return nil
	}
	command.ValidArgsFunction = offer(filesOf, "json")
	command.Flags().StringVar(&key, "key", "",
		"say what both tables hold of the item with this `key`, as PARTITION/SORT (\"/\" inside a key is %2F, \"%\"\n"+
			"is %25) or as a JSON object of the key attributes")
	return command
}
