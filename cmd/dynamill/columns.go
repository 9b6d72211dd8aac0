package main

import (
	"cmp"
	"strings"

	"github.com/dynamill/dynamill/internal/printable"
)

// columnGap parts the columns of a table.
const columnGap = "  "

// columns is a table of text whose columns are aligned when it is shown. A long one
// may be shown in parts: those that follow are at least as wide.
type columns struct {
	indent string
	rows   [][]string
	widths []int
}

// newColumns begins a table with a first row.
func newColumns(indent string, head ...string) *columns {
	c := &columns{indent: indent}
	c.add(head...)
	return c
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

// Text shows the rows and forgets them, with no spaces at the ends of lines.
func (c *columns) Text() string {
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
		line := c.indent
		for i, cell := range row {
			line += cell + strings.Repeat(" ", c.widths[i]-printable.Width(cell)) + columnGap
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	c.rows = nil
	return b.String()
}

// dash stands for what is not known or does not exist.
func dash(text string) string { return cmp.Or(text, "-") }
