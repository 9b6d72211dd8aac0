package main

import (
	"fmt"
	"io"
	"strings"

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
