package main

import (
	"github.com/spf13/cobra"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/parked"
)

func (a *app) parkedCommand() *cobra.Command {
	group := &cobra.Command{
		Use:   "parked",
		Short: "Lists, shows, retries or discards what could not be applied",
		Long: "An item that can have no effect under a rule as it is (a key variable that holds a #, a text where a number is\n" +
			"needed) is parked with its reason, and everything else goes on. A good record of the item clears it; so does\n" +
			"`retry` once the item has been mended. A record that could not be read stays until `discard`; where its key\n" +
			"could be read, its item was brought to what it is now at once.\n\n" +
			"A mirror item for which several items ask, and a unique value that several items have, are listed until one\n" +
			"claimant is left. The claimant with the smallest key wins.\n\n" +
			"`list` and `show` need no rule file where --table is given. IDs are printed so that they can be copied into a shell.",
		Example: "  dynamill parked list --table app\n  dynamill parked retry --all --table app",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	group.AddCommand(
		a.parkedListCommand(),
		a.parkedShowCommand(),
		a.parkedChangeCommand(parked.Retry, "Applies parked items again, as they are now",
			"Derives each item again from what it holds now. An entry whose item is good goes away;\none that is still bad stays, and the exit "+
				"code is 1. A record that could not be read cannot be retried.\n"+
				"Its entry is named as such, and stays."),
		a.parkedChangeCommand(parked.Discard, "Forgets parked items without applying them",
			"Removes entries without applying anything and without asking. While an item is still bad, `verify` calls\n"+
				"its entry missing, and a repair or a replay parks it again."),
	)
	return group
}

func (a *app) parkedShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "show ID",
		Short:   "Shows one parked item",
		Example: "  dynamill parked show 'r1/USER#u1/GROUP#g1' --table app",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return parked.Show(cmd.Context(), &a.out, &a.settings, cmd.Flags().Changed("rules"), args[0])
		},
	}
}

func (a *app) parkedChangeCommand(what parked.Action, short, long string) *cobra.Command {
	var all bool
	verb := what.Verb
	command := &cobra.Command{
		Use:     verb + " {ID... | --all}",
		Short:   short,
		Long:    long,
		Example: "  dynamill parked " + verb + " 'r1/USER#u1/GROUP#g1' --table app\n  dynamill parked " + verb + " --all --table app",
		Args:    cobra.ArbitraryArgs,
		PreRunE: func(_ *cobra.Command, args []string) error { // by now environment and file have said what --all is
			if all == (len(args) > 0) {
				return ending.Invalid("give either IDs from `dynamill parked list` or --all")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return parked.Change(cmd.Context(), &a.out, &a.settings, what, args, all)
		},
	}
	command.Flags().BoolVar(&all, "all", false, verb+" everything that is parked")
	return command
}

func (a *app) parkedListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "Lists what is parked",
		Long: "Lists what is parked. Of a record that could not be read, `dynamill parked show ID` shows what came. Of a contested\n" +
			"target the list names three claimants, and `show` all.",
		Example: "  dynamill parked list --table app\n  dynamill parked list --table app --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return parked.List(cmd.Context(), &a.out, &a.settings, cmd.Flags().Changed("rules"))
		},
	}
}
