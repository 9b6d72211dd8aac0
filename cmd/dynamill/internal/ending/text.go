package ending

import (
	"strings"

	"github.com/dynamill/dynamill/internal/printable"
)

// LaidOut is an error whose line breaks are its own: one of the flags' parser or of
// the configuration file's.
type LaidOut struct{ Err error }

func (e LaidOut) Error() string { return e.Err.Error() }
func (e LaidOut) Unwrap() error { return e.Err }

// Text shows an error. Line breaks beside the text of an error that it wraps
// are the program's own: errors.Join puts them there. So are those between the Lines
// of an error that has such a method. All others stand in a value.
func Text(err error) string {
	var wrapped []error
	switch e := err.(type) { //nolint:errorlint // one error of a chain
	case LaidOut:
		return printable.Lines(e.Error())
	case interface{ Lines() []string }:
		lines := e.Lines()
		for i := range lines {
			lines[i] = printable.Text(lines[i])
		}
		return strings.Join(lines, "\n")
	case interface{ Unwrap() []error }:
		wrapped = e.Unwrap()
	case interface{ Unwrap() error }:
		wrapped = []error{e.Unwrap()}
	}
	var b strings.Builder
	text := err.Error()
	for _, inner := range wrapped {
		if inner == nil {
			continue
		}
		before, after, found := strings.Cut(text, inner.Error())
		if !found {
			continue
		}
		b.WriteString(between(before, b.Len() > 0, true) + Text(inner))
		text = after
	}
	return b.String() + between(text, b.Len() > 0, false)
}

// between shows what stands between the texts of two errors, or beside one.
func between(text string, behind, before bool) string {
	first, last := "", ""
	if behind && strings.HasPrefix(text, "\n") {
		first, text = "\n", text[1:]
	}
	if before && strings.HasSuffix(text, "\n") {
		last, text = "\n", text[:len(text)-1]
	}
	return first + printable.Text(text) + last
}
