package main

import (
	"github.com/spf13/cobra"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/commandline"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/preview"
)

func (a *app) planCommand() *cobra.Command {
	return newCommand("plan", commandline.NoArguments, func(cmd *cobra.Command, _ []string) error {
		return preview.ShowPlan(cmd.Context(), &a.out, &a.settings)
	})
}
