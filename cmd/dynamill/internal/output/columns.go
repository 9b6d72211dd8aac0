package output

import (
	"cmp"
	"strings"
	"time"

	"github.com/dynamill/dynamill/internal/printable"
)

const columnGap = "  "

// Columns is a table of text whose columns are aligned when it is shown. The parts of a long one grow wider only.
type Columns struct {
	Indent string
	Rows   [][]string
	widths []int
}

// NewColumns begins a table with a first row.
func NewColumns(indent string, head ...string) *Columns {
	c := &Columns{Indent: indent}
	c.Add(head...)
	return c
}

// Add appends a row. Cells are made printable.
func (c *Columns) Add(cells ...string) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		row[i] = printable.Text(cell)
	}
	c.Rows = append(c.Rows, row)
}

// Text shows the rows and forgets them, with no spaces at the ends of lines.
func (c *Columns) Text() string {
	for _, row := range c.Rows {
		for i, cell := range row {
			if i == len(c.widths) {
				c.widths = append(c.widths, 0)
			}
			c.widths[i] = max(c.widths[i], printable.Width(cell))
		}
	}
	var b strings.Builder
	for _, row := range c.Rows {
		line := c.Indent
		for i, cell := range row {
			line += cell + strings.Repeat(" ", c.widths[i]-printable.Width(cell)) + columnGap
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	c.Rows = nil
	return b.String()
}

// AlignTabs aligns the cells of consecutive lines that have tabs: a tab ends a cell. The values in the text are printable.
func AlignTabs(text string) string {
	var b strings.Builder
	table := Columns{}
	for line := range strings.Lines(text) {
		if cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t"); len(cells) > 1 {
			table.Rows = append(table.Rows, cells)
			continue
		}
		b.WriteString(table.Text() + line)
		table = Columns{}
	}
	return b.String() + table.Text()
}

// Time shows a time to the second, for people and as JSON; "" of the zero time.
func Time(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// Dash stands for what is not known or does not exist.
func Dash(text string) string { return cmp.Or(text, "-") }
