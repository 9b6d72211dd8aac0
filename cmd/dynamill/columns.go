package main

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dynamill/dynamill/internal/printable"
)

// columnGap parts the columns of a table.
const columnGap = "  "

// columns is a table of text whose columns are aligned when it is written. A
// long one may be written in parts: those that follow are at least as wide.
type columns struct {
	indent string
	rows   [][]string
	widths []int
}

// add appends a row. Cells are made printable: keys and values come from the
// table's users and must not steer the terminal.
func (c *columns) add(cells ...string) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		row[i] = printable.Text(cell)
	}
	c.rows = append(c.rows, row)
}

// writeTo writes the rows and forgets them, with no spaces at the ends of lines.
func (c *columns) writeTo(w io.Writer) error {
	for _, row := range c.rows {
		for i, cell := range row {
			if i == len(c.widths) {
				c.widths = append(c.widths, 0)
			}
			c.widths[i] = max(c.widths[i], printable.Width(cell))
		}
	}
	var b strings.Builder
	for _, row := range c.rows {
		var line strings.Builder
		line.WriteString(c.indent)
		for i, cell := range row {
			line.WriteString(cell)
			line.WriteString(strings.Repeat(" ", c.widths[i]-printable.Width(cell)))
			line.WriteString(columnGap)
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	c.rows = nil
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}

// shellQuote makes text one word for a POSIX shell, so that it can be copied
// into the next command. Characters that cannot be shown are written in the
// $'...' form that bash, zsh and ksh read.
func shellQuote(text string) string {
	const plain = "@%+=:,./_-"
	if text != "" && strings.IndexFunc(text, func(r rune) bool {
		return !(r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(plain, r)))
	}) < 0 {
		return text
	}
	if printable.Text(text) == text {
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\'' || c == '\\':
			b.WriteString(`\` + string(rune(c)))
		case c < ' ' || c >= 0x7f:
			// Three octal digits are always one byte, whatever follows.
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteString("'")
	return b.String()
}
