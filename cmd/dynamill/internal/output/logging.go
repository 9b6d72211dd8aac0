package output

import (
	"errors"
	"io"
	"log/slog"
	"strings"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/progress"
	"github.com/dynamill/dynamill/internal/awserror"
	"github.com/dynamill/dynamill/internal/printable"
)

func (o *Output) level() (slog.Level, error) {
	var level slog.Level
	if o.LogLevel != strings.TrimSpace(o.LogLevel) || strings.ContainsAny(o.LogLevel, "+-") {
		return level, errors.New("want a plain level")
	}
	return level, level.UnmarshalText([]byte(o.LogLevel))
}

// Logger logs to w: as text, or as JSON with --json. Warnings and errors are coloured where standard error may be.
func (o *Output) Logger(w io.Writer) *slog.Logger {
	level, _ := o.level() // checked when the flags were read
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: explainedErrors}
	switch {
	case o.JSON:
		return slog.New(slog.NewJSONHandler(printable.NewJSONWriter(w), options))
	case o.Coloured(o.Stderr):
		return slog.New(slog.NewTextHandler(logPainter{w}, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// explainedErrors puts the errors of AWS in a log into plain words.
func explainedErrors(_ []string, attribute slog.Attr) slog.Attr {
	err, ok := attribute.Value.Any().(error)
	if !ok {
		return attribute
	}
	if told := awserror.Explain(err, awserror.Place{}); told != nil {
		return slog.String(attribute.Key, told.Error())
	}
	return attribute
}

// logPainter writes log lines in the colour of their level. A text handler writes a line at a time.
type logPainter struct{ out io.Writer }

func (p logPainter) Write(line []byte) (int, error) {
	_, level, _ := strings.Cut(string(line), " level=")
	colour := ""
	switch {
	case strings.HasPrefix(level, slog.LevelError.String()):
		colour = progress.Red
	case strings.HasPrefix(level, slog.LevelWarn.String()):
		colour = progress.Yellow
	}
	return len(line), progress.Paint(p.out, colour, string(line))
}
