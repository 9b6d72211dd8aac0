package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/commandline"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/demo"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/internal/story"
)

func (a *app) demoCommand() *cobra.Command {
	command := newCommand("demo", commandline.Arguments(0, 1), func(cmd *cobra.Command, args []string) error {
		example := strings.Join(args, "") // "" is the default
		if example != "" && !slices.Contains(story.Names(), example) {
			return ending.Invalid("there is no example %q: choose one of %s", example, strings.Join(story.Names(), ", "))
		}
		err := demo.Run(cmd.Context(), example, printable.Under(a.out.Stdout), a.out.Coloured(a.out.Stdout)) // it escapes what it shows itself
		switch {
		case errors.Is(err, demo.ErrDrift):
			return &ending.Failure{Code: ending.ExitDrift, Err: err}
		case err != nil:
			return fmt.Errorf("running the demo: %w", err)
		}
		return nil
	})
	command.ValidArgs = story.Names()
	return command
}
