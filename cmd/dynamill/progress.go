package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

const (
	statusInterval = 250 * time.Millisecond // of the line on a terminal
	logInterval    = 10 * time.Second       // of the log line elsewhere
	widthDefault   = 80                     // columns, where the terminal does not say
)

// snapshot is how far `run` has come since it started.
type snapshot struct {
	Records int64         // of the stream, done
	Lag     time.Duration // between the last record's change and now; 0 when nothing waits
	Writes  int64         // requests that wrote
	Healed  int64         // attributes and mirrors that somebody else had overwritten
	Parked  int64
	Seeding string // what is being seeded and how far; "" when nothing is
}

// line is the snapshot for people.
func (s snapshot) line() string {
	parts := []string{
		"records " + grouped(s.Records),
		"lag " + s.Lag.Round(time.Second).String(),
		"writes " + grouped(s.Writes),
	}
	if s.Healed > 0 {
		parts = append(parts, "healed "+grouped(s.Healed))
	}
	if s.Parked > 0 {
		parts = append(parts, "parked "+grouped(s.Parked))
	}
	if s.Seeding != "" {
		parts = append(parts, "seeding "+s.Seeding)
	}
	return strings.Join(parts, "  ")
}

// attributes are the snapshot for logs.
func (s snapshot) attributes() []any {
	found := []any{"records", s.Records, "lag_seconds", int64(s.Lag / time.Second), "writes", s.Writes, "healed", s.Healed, "parked", s.Parked}
	if s.Seeding != "" {
		found = append(found, "seeding", s.Seeding)
	}
	return found
}

// grouped writes a number with its thousands parted: 12,345.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// showProgress shows how far things are until ctx ends: on a terminal as one
// line that is written over, else as a log line whenever something moved.
func showProgress(ctx context.Context, status *statusLine, logger *slog.Logger, take func() snapshot) {
	interval := cmp.Or(map[bool]time.Duration{true: statusInterval}[status.terminal], logInterval)
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	last := take()
	for {
		select {
		case <-ctx.Done():
			status.show("")
			return
		case <-ticker.C:
		}
		now := take()
		if status.terminal {
			status.show(now.line())
			continue
		}
		moved := now
		moved.Lag = last.Lag // lag alone is no movement
		if moved != last {
			logger.Info("following", now.attributes()...)
		}
		last = now
	}
}

// statusLine keeps one line at the bottom of a terminal below what is logged
// there. Where there is no terminal it passes everything through.
type statusLine struct {
	out      io.Writer
	terminal bool
	width    func() int // columns

	mu    sync.Mutex
	shown string
}

func newStatusLine(out io.Writer) *statusLine {
	s := &statusLine{out: out, terminal: isTerminal(out), width: func() int { return widthDefault }}
	if file, ok := out.(interface{ Fd() uintptr }); ok && s.terminal {
		s.width = func() int {
			if columns, _, err := term.GetSize(int(file.Fd())); err == nil && columns > 0 {
				return columns
			}
			return widthDefault
		}
	}
	return s
}

// eraseLine moves to the start of the line and empties it (ECMA-48 EL).
const eraseLine = "\r\x1b[K"

// show replaces the line; "" takes it away.
func (s *statusLine) show(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.terminal || text == s.shown {
		return
	}
	text = printable(text)
	if room := s.width() - 1; len([]rune(text)) > room {
		text = string([]rune(text)[:max(room, 0)])
	}
	s.shown = text
	fmt.Fprint(s.out, eraseLine+text)
}

// Write puts p above the line.
func (s *statusLine) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shown == "" {
		return s.out.Write(p)
	}
	if _, err := io.WriteString(s.out, eraseLine); err != nil {
		return 0, err
	}
	n, err := s.out.Write(p)
	if err == nil {
		_, err = io.WriteString(s.out, s.shown)
	}
	return n, err
}

// logger logs to w: as text, or as JSON with --json.
func (a *app) logger(w io.Writer) *slog.Logger { return a.loggerAs(w, a.options.json) }

func (a *app) loggerAs(w io.Writer, asJSON bool) *slog.Logger {
	level, _ := a.options.level() // checked when the flags were read
	options := &slog.HandlerOptions{Level: level}
	if asJSON {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
