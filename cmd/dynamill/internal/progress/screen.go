package progress

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"regexp"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/dynamill/dynamill/internal/pace"
	"github.com/dynamill/dynamill/internal/printable"
)

// The size of a terminal that does not say how large it is.
const (
	widthDefault  = 80
	heightDefault = 24
)

// Size is how many columns and lines a terminal has.
func Size(w io.Writer) (width, height int) {
	if file, ok := printable.Under(w).(*os.File); ok {
		if width, height, err := term.GetSize(int(file.Fd())); err == nil && width > 0 && height > 0 {
			return width, height
		}
	}
	return widthDefault, heightDefault
}

// IsTerminal reports whether a writer, or the one below a printable.Writer, is a terminal.
func IsTerminal(w io.Writer) bool {
	file, ok := printable.Under(w).(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Screen keeps one line at the bottom of a terminal below what is logged there.
// Elsewhere it passes everything through. It is safe for concurrent use.
type Screen struct {
	out      io.Writer // for text
	raw      io.Writer // below out, for what moves the cursor or colours
	terminal bool
	width    func() int // columns

	mu    sync.Mutex
	shown string
}

// NewScreen returns the Screen of an output.
func NewScreen(out io.Writer) *Screen {
	width := func() int { columns, _ := Size(out); return columns }
	return &Screen{out: out, raw: printable.Under(out), terminal: IsTerminal(out), width: width}
}

// Terminal reports whether the Screen shows a line.
func (s *Screen) Terminal() bool { return s.terminal }

// Width is how many columns a line may take: the last one stays free, because some
// terminals wrap a line that fills it.
func (s *Screen) Width() int { return s.width() - 1 }

// eraseLine moves to the start of the line and empties it (ECMA-48 EL).
const eraseLine = "\r\x1b[K"

// Show replaces the line; "" takes it away.
func (s *Screen) Show(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.terminal || text == s.shown {
		return
	}
	s.shown = cut(printable.Text(text), max(s.Width(), 0))
	fmt.Fprint(s.raw, eraseLine+s.shown)
}

// Write puts p above the line.
func (s *Screen) Write(p []byte) (int, error) {
	return len(p), s.above(func() error {
		_, err := s.out.Write(p)
		return err
	})
}

func (s *Screen) above(write func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shown != "" {
		if _, err := io.WriteString(s.raw, eraseLine); err != nil {
			return err
		}
	}
	err := write()
	if err == nil && s.shown != "" {
		_, err = io.WriteString(s.raw, s.shown)
	}
	return err
}

// The colours, as ECMA-48 sequences (SGR) of the eight that every terminal has.
const (
	Red    = "\x1b[31m"
	Green  = "\x1b[32m"
	Yellow = "\x1b[33m"

	plain = "\x1b[0m"
)

// inLine is a line without its end. No colour reaches over a line break.
var inLine = regexp.MustCompile(`.+`)

// Paint writes lines in a colour, or in none for "", to the writer below a printable.Writer, or above the line of a
// Screen. It escapes the text. The caller knows that the output may carry colours.
func Paint(w io.Writer, colour, text string) error {
	if screen, ok := w.(*Screen); ok {
		return screen.above(func() error { return Paint(screen.out, colour, text) })
	}
	if text = printable.Lines(text); colour != "" {
		text = inLine.ReplaceAllString(text, colour+"$0"+plain)
	}
	_, err := io.WriteString(printable.Under(w), text)
	return err
}

const (
	screenInterval = 250 * time.Millisecond // of the line on a terminal
	logInterval    = 10 * time.Second       // of the log line elsewhere
)

func show(ctx context.Context, screen *Screen, logger *slog.Logger, take func() State) {
	interval := logInterval
	if screen.terminal {
		interval = screenInterval
	}
	var meter Meter
	meter.Add(time.Now(), take())
	for pace.Sleep(ctx, interval) == nil {
		s := take()
		e := meter.Add(time.Now(), s)
		switch {
		case screen.terminal:
			screen.Show(Line(s, e, screen.Width()))
		case !s.Unchanged:
			logger.Info(s.Message, Attributes(s, e)...)
		}
	}
	screen.Show("")
}

// Start shows a command's states beside the caller's own work: on a terminal as one line that is written over, elsewhere
// as a log line every ten seconds. It takes the states from one goroutine. The returned function ends that, and takes the
// line away.
func Start(ctx context.Context, screen *Screen, logger *slog.Logger, take func() State) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var shown sync.WaitGroup
	shown.Go(func() { show(ctx, screen, logger, take) })
	return func() {
		cancel()
		shown.Wait()
	}
}
