package progress

import (
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/term"

	"github.com/dynamill/dynamill/internal/printable"
)

// WidthDefault is the columns of a terminal that does not say how many it has.
const WidthDefault = 80

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
	s := &Screen{out: out, raw: printable.Under(out), terminal: IsTerminal(out), width: func() int { return WidthDefault }}
	if file, ok := s.raw.(*os.File); ok && s.terminal {
		s.width = func() int {
			if columns, _, err := term.GetSize(int(file.Fd())); err == nil && columns > 0 {
				return columns
			}
			return WidthDefault
		}
	}
	return s
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

// Paint puts lines above the line, in a colour: an ECMA-48 sequence (SGR). The
// caller knows that the output may carry colours.
func (s *Screen) Paint(colour, text string) error {
	return s.above(func() error { return Paint(s.out, colour, text) })
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
