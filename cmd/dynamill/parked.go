package main

import (
	"github.com/spf13/cobra"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/commandline"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/parked"
)

func (a *app) parkedCommand() *cobra.Command {
	list := newCommand("parked list", commandline.NoArguments, func(cmd *cobra.Command, _ []string) error {
		return parked.List(cmd.Context(), &a.out, &a.settings, cmd.Flags().Changed("rules"))
	})
	show := newCommand("parked show", commandline.Arguments(1, 1), func(cmd *cobra.Command, args []string) error {
		return parked.Show(cmd.Context(), &a.out, &a.settings, cmd.Flags().Changed("rules"), args[0])
	})
	show.ValidArgsFunction = a.offerFound(a.parkedIDs)
	return newGroup("parked", list, show, a.parkedChangeCommand(parked.Retry), a.parkedChangeCommand(parked.Discard))
}

func (a *app) parkedChangeCommand(what parked.Action) *cobra.Command {
	var all bool
	command := newCommand("parked "+what.Verb, cobra.ArbitraryArgs, func(cmd *cobra.Command, args []string) error {
		return parked.Change(cmd.Context(), &a.out, &a.settings, what, args, all)
	})
	command.PreRunE = func(_ *cobra.Command, args []string) error { // by now environment and file have said what --all is
		if all == (len(args) > 0) {
			return ending.Invalid("give either IDs from `dynamill parked list` or --all")
		}
		return nil
	}
	command.ValidArgsFunction = a.offerFound(a.parkedIDs)
	command.Flags().BoolVar(&all, "all", false, what.Verb+" everything that is parked")
	return command
}
