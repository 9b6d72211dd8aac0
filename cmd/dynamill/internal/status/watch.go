package status

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/output"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/parked"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/progress"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/session"
	"github.com/dynamill/dynamill/internal/printable"
)

const (
	WatchDefault     = 2 * time.Second
	watchIntervalMin = 100 * time.Millisecond // each look reads the tables, which costs
	heightDefault    = 24                     // lines, where the terminal does not say
)

// watchAgain looks again and again until a signal ends it, which is how it is meant to end.
func watchAgain(ctx context.Context, out *output.Output, interval time.Duration, take func(context.Context) (*Report, error)) error {
	ctx, release := session.StopOnSignals(ctx, func(string) {})
	defer release()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for first := true; ; first = false {
		s, err := take(ctx)
		if err == nil {
			showAgain(out, s, first)
			err = out.Failed
		}
		switch {
		case errors.Is(context.Cause(ctx), session.ErrStopped):
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
func showAgain(out *output.Output, s *Report, first bool) {
	if out.JSON {
		out.PrintJSONLine(s)
		return
	}
	text := time.Now().UTC().Format(parked.TimeForm) + "  " + s.Text()
	switch {
	case progress.IsTerminal(out.Stdout):
		width, height := terminalSize(out.Stdout)
		out.PrintData(eraseScreen + printable.Lines(fitted(text, width, height)))
	case first:
		out.PrintText(text)
	default:
		out.PrintText("\n" + text)
	}
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
		lines = append(lines[:room:room], fmt.Sprintf("... %s more", printable.Counted(len(lines)-room, "line")))
	}
	for i, line := range lines {
		if runes := []rune(line); len(runes) > width {
			lines[i] = string(runes[:width])
		}
	}
	return strings.Join(lines, "\n") + "\n"
}
