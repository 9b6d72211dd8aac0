package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/progress"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/rules"
)

// output is where one call of the command writes: results to standard output, the rest to standard error.
type output struct {
	stdout, stderr io.Writer // escape what could steer a terminal (internal/printable)

	json     bool   // --json
	color    string // --color
	logLevel string // --log-level

	failed error // of the first result that could not be written; nothing is written after it
}

// check refuses values of flags that no output can have.
func (o *output) check() error {
	if _, err := o.level(); err != nil {
		return fmt.Errorf("--log-level %q is not one of debug, info, warn, error", o.logLevel)
	}
	if o.color != colorAuto && o.color != colorAlways && o.color != colorNever {
		return fmt.Errorf("--color %q is not one of auto, always, never", o.color)
	}
	return nil
}

// print writes a result. Texts among the arguments are shown within the line.
func (o *output) print(format string, args ...any) {
	for i, arg := range args {
		if text, ok := arg.(string); ok {
			args[i] = printable.Text(text)
		}
	}
	o.printText(fmt.Sprintf(format, args...))
}

// printText writes lines whose values are printable already.
func (o *output) printText(text string) { o.write(o.stdout, text) }

// printData writes what is for a program: a template, a script.
func (o *output) printData(text string) { o.write(printable.Under(o.stdout), text) }

func (o *output) write(w io.Writer, text string) {
	if o.failed != nil {
		return
	}
	if _, err := io.WriteString(w, text); err != nil {
		o.failed = fmt.Errorf("writing the result: %w", err)
	}
}

// printResult writes a result as JSON with --json, otherwise as lines for people.
func (o *output) printResult(result interface{ Text() string }) {
	if o.json {
		o.printJSON(result)
	} else {
		o.printText(result.Text())
	}
}

// printJSON writes a result as indented JSON.
func (o *output) printJSON(result any) { o.printJSONPart("", "", result, "\n") }

// printJSONLine writes a result as one line of JSON.
func (o *output) printJSONLine(result any) {
	line, err := json.Marshal(result)
	if err != nil {
		o.failed = errors.Join(o.failed, fmt.Errorf("writing the result: %w", err))
	}
	o.write(printable.NewJSONWriter(o.stdout), string(line)+"\n")
}

// printJSONPart writes a part of a JSON value with the indent that it has there, between two texts.
func (o *output) printJSONPart(before, indent string, part any, after string) {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetIndent(indent, "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(part); err != nil {
		o.failed = errors.Join(o.failed, fmt.Errorf("writing the result: %w", err))
	}
	o.write(printable.NewJSONWriter(o.stdout), before+strings.TrimSuffix(b.String(), "\n")+after)
}

// printOutcome writes the lines of a result in the colour of its outcome. The
// caller has made the values in them printable.
func (o *output) printOutcome(colour, text string) {
	if !o.coloured(o.stdout) {
		o.printText(text)
	} else if err := progress.Paint(o.stdout, colour, text); err != nil {
		o.failed = errors.Join(o.failed, fmt.Errorf("writing the result: %w", err))
	}
}

// report writes an error to standard error and returns its exit code. Rule
// problems are a list with source lines and carets: they stand as they are.
func (o *output) report(err error) int {
	var problems *rules.Problems
	text := fmt.Sprintf("dynamill: %s\n", errorText(err))
	switch {
	case errors.As(err, &problems):
		fmt.Fprintln(o.stderr, problems.Error())
	case o.coloured(o.stderr):
		_ = progress.Paint(o.stderr, progress.Red, text)
	default:
		fmt.Fprint(o.stderr, text)
	}
	return exitCode(err)
}

// The values of --color.
const (
	colorAuto   = "auto"
	colorAlways = "always"
	colorNever  = "never"
)

// coloured reports whether one of the outputs may carry colours: with auto a
// terminal that does not ask for none (no-color.org).
func (o *output) coloured(w io.Writer) bool {
	switch o.color {
	case colorAlways:
		return true
	case colorNever:
		return false
	}
	return progress.IsTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// outcomeColour is the colour of a result with so many parked records.
func outcomeColour(parked int) string {
	if parked > 0 {
		return progress.Yellow
	}
	return progress.Green
}
