package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/demo"
)

func (a *app) demoCommand() *cobra.Command {
	names := demo.Names()
	return &cobra.Command{
		Use:   "demo [EXAMPLE]",
		Short: "Shows an example at work, in memory",
		Long: "Runs an example end to end in memory, without AWS: writes items, follows the stream, shows base and derived\n" +
			"items before and after each step and what it cost, and verifies at the end that nothing drifts.\n\n" +
			"Examples: " + strings.Join(names, ", ") + ".",
		Example:   "  dynamill demo\n  dynamill demo " + names[len(names)-1],
		ValidArgs: names,
		Args:      cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			example := demo.Default
			if len(args) == 1 {
				example = args[0]
			}
			if !slices.Contains(names, example) {
				return invalid("there is no example %q: choose one of %s", example, strings.Join(names, ", "))
			}
			err := demo.Run(cmd.Context(), example, a.stdout, coloured(a.stdout))
			switch {
			case errors.Is(err, demo.ErrDrift):
				return &failure{code: exitDrift, err: err}
			case err != nil:
				return fmt.Errorf("running the demo: %w", err)
			}
			return nil
		},
	}
}

// coloured reports whether output may carry colours: a terminal that does not
// ask for none (no-color.org).
func coloured(w io.Writer) bool {
	return isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
