package progress

import (
	"io"
	"strings"

	"github.com/dynamill/dynamill/internal/printable"
)

// The colours, as ECMA-48 sequences (SGR) of the eight that every terminal has.
const (
	Red    = "\x1b[31m"
	Green  = "\x1b[32m"
	Yellow = "\x1b[33m"

	plain = "\x1b[0m"
)

// painted is a text in a colour. It escapes the text, so that a value in it cannot
// steer the terminal. No colour reaches over a line break.
func painted(colour, text string) string {
	text = printable.Lines(text)
	if colour == "" {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		line, ended := strings.CutSuffix(line, "\n")
		if line != "" {
			b.WriteString(colour + line + plain)
		}
		if ended {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// Paint writes a text in a colour to the writer below a printable.Writer.
func Paint(w io.Writer, colour, text string) error {
	_, err := io.WriteString(printable.Under(w), painted(colour, text))
	return err
}
