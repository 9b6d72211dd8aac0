package demo

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/dynamill/dynamill/internal/printable"
)

// columnsMax is the width that the demonstration keeps to, in characters.
const columnsMax = 80

// style is an ANSI "select graphic rendition" sequence without its frame.
type style string

const (
	plain    style = ""
	heading  style = "1"    // bold
	faint    style = "2"    // what was there before
	derived  style = "32"   // green: an attribute that a rule owns
	changed  style = "1;32" // bold green: one that dynamill has just written
	users    style = "36"   // cyan: a write of the application
	gone     style = "31"   // red: what is no longer there
	goodNews style = "1;32"
	badNews  style = "1;31"
)

// span is a piece of a line that is not broken, perhaps with another close behind it.
type span struct {
	text  string
	style style
	then  *span
}

func ink(text string, s style) span { return span{text: printable.Text(text), style: s} }

// with puts another piece close behind a single one.
func (s span) with(next span) span {
	s.then = &next
	return s
}

func (s span) width() int {
	n := utf8.RuneCountInString(s.text)
	if s.then != nil {
		n += s.then.width()
	}
	return n
}

// paper writes lines of at most columnsMax columns. The first failed write is
// kept, as by bufio.Writer, and returned by flush.
type paper struct {
	out    io.Writer
	colour bool
	buffer bytes.Buffer
}

// flush hands on what was written, so that a person sees each step as it ends.
func (p *paper) flush() error {
	if _, err := p.buffer.WriteTo(p.out); err != nil {
		return fmt.Errorf("showing the demonstration: %w", err)
	}
	return nil
}

func (p *paper) paint(s span) {
	if p.colour && s.style != plain && s.text != "" {
		p.buffer.WriteString("\x1b[" + string(s.style) + "m" + s.text + "\x1b[0m")
	} else {
		p.buffer.WriteString(s.text)
	}
	if s.then != nil {
		p.paint(*s.then)
	}
}

func (p *paper) blank() { p.buffer.WriteByte('\n') }

// say writes one line, or, where a text is long, several, broken between
// words, with all but the first indented.
func (p *paper) say(indent int, first span, text span) {
	var words []span
	for _, w := range strings.Fields(text.text) {
		words = append(words, ink(w, text.style))
	}
	p.columns(first, indent, words, 1)
}

// columns writes a head, and behind it parts with a gap between them; parts
// that do not fit go on below each other, indented. The line keeps its head
// even where that leaves no room.
func (p *paper) columns(head span, indent int, parts []span, gap int) {
	p.paint(head)
	at := head.width()
	if pad := indent - at; pad > 0 && len(parts) > 0 {
		p.buffer.WriteString(strings.Repeat(" ", pad))
		at = indent
	}
	begun := false
	for _, part := range parts {
		if begun && at+gap+part.width() > columnsMax {
			p.buffer.WriteString("\n" + strings.Repeat(" ", indent))
			at, begun = indent, false
		}
		if begun {
			p.buffer.WriteString(strings.Repeat(" ", gap))
			at += gap
		}
		p.paint(part)
		at += part.width()
		begun = true
	}
	p.blank()
}
