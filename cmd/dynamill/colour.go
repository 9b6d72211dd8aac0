package main

import (
	"io"
	"os"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/progress"
)

// The values of --color.
const (
	colorAuto   = "auto"
	colorAlways = "always"
	colorNever  = "never"
)

// coloured reports whether one of the command's outputs may carry colours: with
// auto a terminal that does not ask for none (no-color.org).
func (a *app) coloured(w io.Writer) bool {
	switch a.options.color {
	case colorAlways:
		return true
	case colorNever:
		return false
	}
	return progress.IsTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// printOutcome writes the lines of a result in the colour of its outcome. The
// caller has made the values in them printable.
func (a *app) printOutcome(colour, text string) error {
	if !a.coloured(a.stdout) {
		return a.printText(text)
	}
	return writeText(colouredWriter{a.stdout, colour}, text)
}

// colouredWriter paints what is written to it.
type colouredWriter struct {
	out    io.Writer
	colour string
}

// Write writes p in the colour.
func (w colouredWriter) Write(p []byte) (int, error) {
	return len(p), progress.Paint(w.out, w.colour, string(p))
}

// outcomeColour is the colour of a result with so many parked records.
func outcomeColour(parked int) string {
	if parked > 0 {
		return progress.Yellow
	}
	return progress.Green
}
