// Package output is where a command writes: results as text, tables or JSON to standard output, errors and logs to standard
// error. Values are escaped before they reach a terminal. It imports ending, progress and internal/printable.
package output

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/progress"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/internal/rules"
)

// Output is where one call of the command writes: results to standard output, the rest to standard error.
type Output struct {
	Stdout, Stderr io.Writer // escape what could steer a terminal (internal/printable)

	JSON     bool   // --json
	Color    string // --color
	LogLevel string // --log-level

	Failed error // of the first result that could not be written; nothing is written after it
}

// Check refuses values of flags that no output can have.
func (o *Output) Check() error {
	if _, err := o.level(); err != nil {
		return fmt.Errorf("--log-level %q is not one of debug, info, warn, error", o.LogLevel)
	}
	if o.Color != ColorAuto && o.Color != ColorAlways && o.Color != ColorNever {
		return fmt.Errorf("--color %q is not one of auto, always, never", o.Color)
	}
	return nil
}

// Print writes a result. Texts among the arguments are shown within the line.
func (o *Output) Print(format string, args ...any) {
	for i, arg := range args {
		if text, ok := arg.(string); ok {
			args[i] = printable.Text(text)
		}
	}
	o.PrintText(fmt.Sprintf(format, args...))
}

// PrintText writes lines whose values are printable already.
func (o *Output) PrintText(text string) { o.write(o.Stdout, text) }

// PrintData writes what is for a program: a template, a script.
func (o *Output) PrintData(text string) { o.write(printable.Under(o.Stdout), text) }

func (o *Output) write(w io.Writer, text string) {
	if o.Failed == nil {
		_, err := io.WriteString(w, text)
		o.fail(err)
	}
}

// fail keeps the first error.
func (o *Output) fail(err error) {
	if err != nil && o.Failed == nil {
		o.Failed = fmt.Errorf("writing the result: %w", err)
	}
}

// PrintResult writes a result as JSON with --json, otherwise as lines for people.
func (o *Output) PrintResult(result interface{ Text() string }) {
	if o.JSON {
		o.PrintJSON(result)
	} else {
		o.PrintText(result.Text())
	}
}

// PrintJSON writes a result as indented JSON.
func (o *Output) PrintJSON(result any) { o.PrintJSONPart("", "", result, "\n") }

// PrintJSONLine writes a result as one line of JSON.
func (o *Output) PrintJSONLine(result any) {
	line, err := json.Marshal(result)
	o.fail(err)
	o.write(printable.NewJSONWriter(o.Stdout), string(line)+"\n")
}

// PrintJSONPart writes a part of a JSON value with the indent that it has there, between two texts.
func (o *Output) PrintJSONPart(before, indent string, part any, after string) {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetIndent(indent, "  ")
	encoder.SetEscapeHTML(false)
	o.fail(encoder.Encode(part))
	o.write(printable.NewJSONWriter(o.Stdout), before+strings.TrimSuffix(b.String(), "\n")+after)
}

// PrintOutcome writes lines whose values are printable already, in the colour of an outcome.
func (o *Output) PrintOutcome(colour, text string) {
	if !o.Coloured(o.Stdout) {
		o.PrintText(text)
	} else {
		o.fail(progress.Paint(o.Stdout, colour, text))
	}
}

// Report writes an error to standard error and returns its exit code. Rule problems, with source lines, stand as they are.
func (o *Output) Report(err error) int {
	text := fmt.Sprintf("dynamill: %s\n", ending.Text(err))
	switch problems, ok := errors.AsType[*rules.Problems](err); {
	case ok:
		fmt.Fprintln(o.Stderr, problems.Error())
	case o.Coloured(o.Stderr):
		_ = progress.Paint(o.Stderr, progress.Red, text)
	default:
		fmt.Fprint(o.Stderr, text)
	}
	return ending.ExitCode(err)
}

// The values of --color.
const (
	ColorAuto   = "auto"
	ColorAlways = "always"
	ColorNever  = "never"
)

// Coloured reports whether one of the outputs may carry colours: with auto a terminal that does not ask for none (no-color.org).
func (o *Output) Coloured(w io.Writer) bool {
	switch o.Color {
	case ColorAlways:
		return true
	case ColorNever:
		return false
	}
	return progress.IsTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
