package main

import (
	"github.com/spf13/cobra"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/build"
)

// addVersionFlag makes --version say what the command says.
func addVersionFlag(root *cobra.Command) {
	root.Version = build.Current().Words()
	root.SetVersionTemplate("{{.Version}}\n")
}

func (a *app) versionCommand() *cobra.Command {
	return newCommand("version", cobra.NoArgs, func(*cobra.Command, []string) error {
		a.out.PrintResult(build.Current())
		return nil
	})
}
