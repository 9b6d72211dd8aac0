package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/status"
)

// noInterval refuses any argument, and says how an interval is given: pflag takes none behind a space.
func noInterval(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	problem := fmt.Sprintf("`dynamill status` takes no argument %q", args[0])
	if _, err := time.ParseDuration(args[0]); err == nil {
		problem = "give the interval as --watch=" + args[0]
	}
	return ending.Invalid("%s; `dynamill status --help` shows how it is used", problem)
}

func (a *app) statusCommand() *cobra.Command {
	var o status.Options
	command := newCommand("status", noInterval, func(cmd *cobra.Command, _ []string) error {
		return status.Show(cmd.Context(), &a.out, &a.settings, cmd.Flags().Changed("rules"), o)
	})
	command.PreRunE = func(*cobra.Command, []string) error { return o.Refuse(a.typed["watch"]) }
	flags := command.Flags()
	flags.DurationVar(&o.Watch, "watch", 0, "look again at this `interval` until stopped; --watch alone: every "+status.WatchDefault.String())
	flags.Lookup("watch").NoOptDefVal = status.WatchDefault.String()
	flags.BoolVar(&o.Check, "check", false, "print the first line only, and end with exit code 1 unless the table is followed")
	flags.DurationVar(&o.LagMax, "ready-lag", status.ReadyLagDefault, "a lag beyond this `duration` is not healthy (0: lag does not count)")
	return command
}
