package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// columnGap parts the columns of a table.
const columnGap = "  "

// columns is a table of text whose columns are aligned when it is written.
type columns struct {
	indent string
	rows   [][]string
}

// add appends a row. Cells are made printable: keys and values come from the
// table's users and must not steer the terminal.
func (c *columns) add(cells ...string) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		row[i] = printable(cell)
	}
	c.rows = append(c.rows, row)
}

// writeTo writes the table, with no spaces at the ends of lines.
func (c *columns) writeTo(w io.Writer) error {
	var widths []int
	for _, row := range c.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range c.rows {
		var line strings.Builder
		line.WriteString(c.indent)
		for i, cell := range row {
			line.WriteString(cell)
			line.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)))
			line.WriteString(columnGap)
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}

// printable shows characters that are not for showing as escapes.
func printable(text string) string {
	if utf8.ValidString(text) && strings.IndexFunc(text, isUnprintable) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(text, "\uFFFD") {
		if isUnprintable(r) {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func isUnprintable(r rune) bool { return !unicode.IsPrint(r) }

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
	if utf8.ValidString(text) && strings.IndexFunc(text, isUnprintable) < 0 {
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
