package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/progress"
	"github.com/dynamill/dynamill/internal/printable"
)

const (
	watchDefault     = 2 * time.Second
	watchIntervalMin = 100 * time.Millisecond // each look reads the tables, which costs
	heightDefault    = 24                     // lines, where the terminal does not say
)

// watching is the flag --watch.
type watching struct {
	on       bool
	interval time.Duration
}

func (w *watching) addTo(flags *pflag.FlagSet) {
	flags.DurationVar(&w.interval, "watch", 0, "look again at this `interval` until stopped; --watch alone: every "+watchDefault.String())
	flags.Lookup("watch").NoOptDefVal = watchDefault.String()
}

// arguments refuses any, and says how an interval is given: pflag takes none behind a space.
func (w *watching) arguments(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if _, err := time.ParseDuration(args[0]); err == nil {
		return fmt.Errorf("give the interval as --watch=%s", args[0])
	}
	return fmt.Errorf("`dynamill status` takes no argument %q", args[0])
}

func (w *watching) check(given bool) error {
	if w.on = given; given && w.interval < watchIntervalMin {
		return invalid("--watch=%s is too short: give at least %s", w.interval, watchIntervalMin)
	}
	return nil
}

// watchStatus looks again and again until a signal ends it, which is how it is meant to end.
func (a *app) watchStatus(ctx context.Context, watch watching, take func(context.Context) (*tableStatus, error)) error {
	ctx, release := stopOnSignals(ctx, func(string) {})
	defer release()
	ticker := time.NewTicker(watch.interval)
	defer ticker.Stop()
	for first := true; ; first = false {
		s, err := take(ctx)
		if err == nil {
			err = a.showAgain(s, first)
		}
		switch {
		case errors.Is(context.Cause(ctx), errStopped):
			return nil
		case err != nil:
			return err
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// showAgain redraws a terminal; elsewhere it appends: JSON as a line of its own.
func (a *app) showAgain(s *tableStatus, first bool) error {
	if a.options.json {
		return a.printJSONLine(s)
	}
	text := time.Now().UTC().Format(timeForm) + "  " + s.text()
	if progress.IsTerminal(a.stdout) {
		width, height := terminalSize(a.stdout)
		return writeText(printable.Under(a.stdout), eraseScreen+printable.Lines(fitted(text, width, height)))
	}
	if !first {
		text = "\n" + text
	}
	return a.printText(text)
}

// eraseScreen goes to the first line and empties the screen (ECMA-48 CUP and ED).
const eraseScreen = "\x1b[H\x1b[2J"

func terminalSize(out io.Writer) (width, height int) {
	if file, ok := printable.Under(out).(interface{ Fd() uintptr }); ok {
		if width, height, err := term.GetSize(int(file.Fd())); err == nil && width > 0 && height > 0 {
			return width, height
		}
	}
	return progress.WidthDefault, heightDefault
}

// fitted cuts text to a screen, whose last line is left for the cursor, and says how much is cut off below.
func fitted(text string, width, height int) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if room := max(height-2, 1); len(lines) > room+1 {
		lines = append(lines[:room:room], fmt.Sprintf("... %s more", counted(len(lines)-room, "line")))
	}
	for i, line := range lines {
		if runes := []rune(line); len(runes) > width {
			lines[i] = string(runes[:width])
		}
	}
	return strings.Join(lines, "\n") + "\n"
}
