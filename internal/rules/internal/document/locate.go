package document

import (
	"strings"
	"unicode/utf8"
)

// Locate finds the place of a part of a scalar's text, given in bytes, past folded blanks, doubled quotes and escapes.
// Where it loses the trail it returns the whole scalar.
func (d *Document) Locate(n *Node, offset, length int) Place {
	w := walker{lines: d.lines, line: n.Line - 1, style: ' '}
	if n.Text == "" || n.Line < 1 || n.Line > len(d.lines) {
		return n.Place
	}
	w.column = len(firstOf(d.lines[w.line], n.Column-1))
	if n.Quoted && w.column < len(d.lines[w.line]) {
		w.style = d.lines[w.line][w.column]
		if w.style == '|' || w.style == '>' {
			w.line, w.column = w.line+1, 0
		} else {
			w.column++
		}
	}
	offset = min(max(offset, 0), len(n.Text))
	if !w.follow(n.Text[:offset]) {
		return n.Place
	}
	if offset < len(n.Text) && !isBlank(n.Text[offset]) {
		w.skipBlanks()
	}
	at := w.place()
	start := w
	if !w.follow(n.Text[offset:min(len(n.Text), offset+length)]) {
		return n.Place
	}
	at.Length = 1
	if w.line == start.line && w.column > start.column {
		at.Length = utf8.RuneCountInString(d.lines[w.line][start.column:w.column])
	} else if w.line > start.line {
		at.Length = utf8.RuneCountInString(d.lines[start.line][start.column:])
	}
	return at
}

func isBlank(c byte) bool { return c == ' ' || c == '\n' || c == '\t' }

// walker goes through the lines of a scalar as its text is read off.
type walker struct {
	lines        []string
	line, column int  // from 0, the column in bytes
	style        byte // ' ' plain, ' or " quoted, | or > block
}

// placeIn is the place at a byte of a line, which counts from 1.
func placeIn(lines []string, line, offset, length int) Place {
	return Place{line, utf8.RuneCountInString(lines[line-1][:offset]) + 1, length}
}

func (w *walker) place() Place {
	if w.line >= len(w.lines) {
		last := len(w.lines) - 1
		return Place{last + 1, utf8.RuneCountInString(w.lines[last]) + 1, 1}
	}
	return placeIn(w.lines, w.line+1, w.column, 1)
}

func (w *walker) skipBlanks() {
	for w.line < len(w.lines) {
		line := w.lines[w.line]
		for w.column < len(line) && isBlank(line[w.column]) {
			w.column++
		}
		if w.column < len(line) || w.line == len(w.lines)-1 {
			return
		}
		w.line, w.column = w.line+1, 0
	}
}

// follow moves over text; false if the lines say something else.
func (w *walker) follow(text string) bool {
	for i := 0; i < len(text); i++ {
		if isBlank(text[i]) && !w.escaped() {
			continue
		}
		if i == 0 || isBlank(text[i-1]) || w.line < len(w.lines) && w.column >= len(w.lines[w.line]) {
			w.skipBlanks()
		}
		if w.line >= len(w.lines) || w.column >= len(w.lines[w.line]) {
			return false
		}
		if w.escaped() {
			size := w.escape()
			if text[i] >= utf8.RuneSelf {
				_, width := utf8.DecodeRuneInString(text[i:])
				i += width - 1
			}
			w.column = min(w.column+size, len(w.lines[w.line]))
			continue
		}
		if w.lines[w.line][w.column] != text[i] {
			return false
		}
		w.column++
	}
	return true
}

func (w *walker) escaped() bool {
	if w.line >= len(w.lines) || w.column >= len(w.lines[w.line]) {
		return false
	}
	rest := w.lines[w.line][w.column:]
	return w.style == '"' && rest[0] == '\\' || w.style == '\'' && strings.HasPrefix(rest, "''")
}

func (w *walker) escape() int {
	if w.style == '\'' {
		return 2
	}
	rest := w.lines[w.line][w.column:]
	if len(rest) < 2 {
		return 1
	}
	switch rest[1] {
	case 'x':
		return 4
	case 'u':
		return 6
	case 'U':
		return 10
	}
	return 2
}
