// Package printable shows people text that came from a table, a stream record,
// a file or another program. Such text may hold escape sequences that steer a
// terminal, characters that reverse what follows them, and line breaks that
// make one value look like two lines of output. It imports nothing of the module.
//
// The escaping is done in two places, because neither sees enough alone:
//
//   - At the border. Everything that the command prints for people goes through a
//     Writer, which lets no control and no format character pass but line breaks and tabs. A
//     call site that forgets to escape a value cannot harm the terminal. What the
//     program itself draws with, it writes to the writer Under it.
//   - Where values are laid out. Only the code that puts values into lines and
//     columns knows which line breaks are its own. It shows each value with Text.
//
// JSON is read by programs and keeps the true text: a JSONWriter replaces the
// same characters by JSON's own escapes. Texts that are data, such as keys in the
// state table, are never changed.
package printable

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text shows a value within a line: letters, marks, numbers, signs and emoji as
// they are, everything else as an escape like \n, \x1b or \u202e. A byte that is
// not UTF-8 becomes \xff.
func Text(text string) string { return escaped(text, func(rune) bool { return false }) }

// Lines is Text that keeps line breaks and tabs.
func Lines(text string) string { return escaped(text, isLayout) }

func escaped(text string, keep func(rune) bool) string {
	f := filter{keep: keep, escape: appendEscape}
	return string(f.append(nil, []byte(text), true))
}

// Width is how many places of a line a printable text takes, if each character
// takes one. Marks that are put above or below the character before take none.
func Width(text string) (places int) {
	for _, r := range text {
		if !unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
			places++
		}
	}
	return places
}

func isLayout(r rune) bool { return r == '\n' || r == '\t' }

const (
	nonJoiner = '\u200c'
	joiner    = '\u200d'
	blackFlag = '\U0001f3f4'
	tagFirst  = '\U000e0020'
	tagLast   = '\U000e007f'
)

// isShown reports whether a character is shown as it is behind another. Two kinds of
// format characters are: those that join letters or emoji, and those that
// make a black flag the flag of a region.
func isShown(previous, r rune) bool {
	switch {
	case r == joiner || r == nonJoiner:
		return previous >= utf8.RuneSelf && unicode.IsPrint(previous)
	case tagFirst <= r && r <= tagLast:
		return previous == blackFlag || tagFirst <= previous && previous <= tagLast
	}
	return unicode.IsPrint(r)
}

// appendEscape writes a character as Go would within quotes.
func appendEscape(to []byte, r rune) []byte {
	return append(to, strings.Trim(strconv.QuoteRune(r), "'")...)
}

// filter replaces what is not shown, in a text that may come in parts.
type filter struct {
	keep     func(rune) bool
	escape   func(to []byte, r rune) []byte
	previous rune   // the last character, if it is shown as it is
	cut      []byte // the beginning of a character whose end is still to come
}

// append adds the text to what is printed. In the last part, a character that is cut off is no character.
func (f *filter) append(to, text []byte, last bool) []byte {
	text = slices.Concat(f.cut, text)
	f.cut = nil
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		shown := rune(0)
		switch {
		case r == utf8.RuneError && size == 1 && !last && !utf8.FullRune(text):
			f.cut = slices.Clone(text)
			return to
		case r == utf8.RuneError && size == 1:
			to = fmt.Appendf(to, `\x%x`, text[0])
		case f.keep(r) || isShown(f.previous, r):
			to = append(to, text[:size]...)
			shown = r
		default:
			to = f.escape(to, r)
		}
		f.previous = shown
		text = text[size:]
	}
	return to
}
