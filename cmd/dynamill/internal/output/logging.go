package output

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"

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

// Logger logs to w: as text, or as JSON with --json. Warnings and errors are
// coloured where standard error may carry colours.
func (o *Output) Logger(w io.Writer) *slog.Logger {
	level, _ := o.level() // checked when the flags were read
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: explainedErrors}
	switch {
	case o.JSON:
		return slog.New(slog.NewJSONHandler(printable.NewJSONWriter(w), options))
	case o.Coloured(o.Stderr):
		line := &bytes.Buffer{}
		return slog.New(&paintedHandler{Handler: slog.NewTextHandler(line, options), mu: &sync.Mutex{}, line: line, out: w})
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

// paintedHandler writes log lines in the colour of their level.
type paintedHandler struct {
	slog.Handler // writes to line

	mu   *sync.Mutex // of line
	line *bytes.Buffer
	out  io.Writer
}

// Handle writes one line.
func (h *paintedHandler) Handle(ctx context.Context, record slog.Record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.line.Reset()
	if err := h.Handler.Handle(ctx, record); err != nil {
		return err
	}
	colour := ""
	switch {
	case record.Level >= slog.LevelError:
		colour = progress.Red
	case record.Level >= slog.LevelWarn:
		colour = progress.Yellow
	}
	if screen, ok := h.out.(*progress.Screen); ok {
		return screen.Paint(colour, h.line.String())
	}
	return progress.Paint(h.out, colour, h.line.String())
}

// WithAttrs implements slog.Handler.
func (h *paintedHandler) WithAttrs(attributes []slog.Attr) slog.Handler {
	return &paintedHandler{Handler: h.Handler.WithAttrs(attributes), mu: h.mu, line: h.line, out: h.out}
}

// WithGroup implements slog.Handler.
func (h *paintedHandler) WithGroup(name string) slog.Handler {
	return &paintedHandler{Handler: h.Handler.WithGroup(name), mu: h.mu, line: h.line, out: h.out}
}
