package demo

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/dynamill/dynamill/internal/printable"
)

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

type inked struct {
	text  string
	style style
}

// span is a piece of a line that is not broken.
type span []inked

func ink(text string, s style) span { return span{{printable.Text(text), s}} }

func (s span) width() (n int) {
	for _, part := range s {
		n += utf8.RuneCountInString(part.text)
	}
	return n
}

// paper writes lines of at most columnsMax columns.
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
	for _, part := range s {
		if p.colour && part.style != plain && part.text != "" {
			part.text = "\x1b[" + string(part.style) + "m" + part.text + "\x1b[0m"
		}
		p.buffer.WriteString(part.text)
	}
}

func (p *paper) blank() { p.buffer.WriteByte('\n') }

// say writes a text broken between words. All lines but the first are indented.
func (p *paper) say(indent int, first span, text span) {
	var words []span
	for _, w := range strings.Fields(text[0].text) {
		words = append(words, ink(w, text[0].style))
	}
	p.columns(first, indent, words, 1)
}

// columns writes a head, and behind it parts with a gap between them. Parts that do not fit go on below each other, indented.
// The line keeps its head even where that leaves no room.
func (p *paper) columns(head span, indent int, parts []span, gap int) {
	p.paint(head)
	at := head.width()
	if pad := indent - at; pad > 0 && len(parts) > 0 {
		p.buffer.WriteString(strings.Repeat(" ", pad))
		at = indent
	}
	for i, part := range parts {
		switch {
		case i == 0:
		case at+gap+part.width() > columnsMax:
			p.buffer.WriteString("\n" + strings.Repeat(" ", indent))
			at = indent
		default:
			p.buffer.WriteString(strings.Repeat(" ", gap))
			at += gap
		}
		p.paint(part)
		at += part.width()
	}
	p.blank()
}
