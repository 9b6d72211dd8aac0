package printable

import (
	"fmt"
	"io"
	"sync"
	"unicode/utf16"
)

// Writer shows what is written to it as Lines does. It is safe for concurrent use.
type Writer struct {
	under io.Writer

	mu     sync.Mutex
	filter filter
}

// NewWriter returns a Writer that prints for people.
func NewWriter(under io.Writer) *Writer {
	return &Writer{under: under, filter: filter{keep: isLayout, escape: appendEscape}}
}

// NewJSONWriter returns a Writer for JSON. It escapes the same characters as
// JSON does, so that a program that reads them has the true text.
func NewJSONWriter(under io.Writer) *Writer {
	return &Writer{under: under, filter: filter{keep: isLayout, escape: appendJSONEscape}}
}

func appendJSONEscape(to []byte, r rune) []byte {
	if high, low := utf16.EncodeRune(r); high != '\ufffd' {
		return fmt.Appendf(to, `\u%04x\u%04x`, high, low)
	}
	return fmt.Appendf(to, `\u%04x`, r)
}

// Write prints p.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := w.under.Write(w.filter.append(make([]byte, 0, len(p)), p, false)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Under returns the writer that a Writer prints to, and any other writer as it is.
func Under(w io.Writer) io.Writer {
	if w, ok := w.(*Writer); ok {
		return w.under
	}
	return w
}
