// Package printable shows people text that came from a table, a stream record, a file or another program. Such text may hold
// escape sequences that steer a terminal, characters that reverse what follows them, and line breaks that make one value look
// like two lines of output. It imports nothing of the module.
//
// The escaping is done in two places, because neither sees enough alone:
//
//   - At the border. Everything that the command prints for people goes through a Writer, which lets no control and no format
//     character pass but line breaks and tabs. What the program itself draws with, it writes to the writer Under it.
//   - Where values are laid out. Only the code there knows which line breaks are its own. It shows each value with Text.
//
// JSON keeps the true text: a JSON writer replaces the same characters by JSON's own escapes.
package printable

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text shows a value within a line: letters, marks, numbers, signs and emoji as they are, everything else as an escape like
// \n, \x1b or \u202e. A byte that is not UTF-8 becomes \xff.
func Text(text string) string { return escaped(text, func(rune) bool { return false }) }

// Lines is Text that keeps line breaks and tabs.
func Lines(text string) string { return escaped(text, isLayout) }

func escaped(text string, keep func(rune) bool) string {
	f := filter{keep: keep, escape: appendEscape}
	return string(f.append(nil, []byte(text), true))
}

// Quoted shows a value in a sentence, cut where it is long.
func Quoted(value string) string {
	const shown = 80
	if len(value) > shown {
		return fmt.Sprintf("%q...", strings.ToValidUTF8(value[:shown], ""))
	}
	return fmt.Sprintf("%q", value)
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

// isShown reports whether a character is shown as it is behind another. Two kinds of format characters are: those that join
// letters or emoji, and those that make a black flag the flag of a region.
func isShown(previous, r rune) bool {
	switch {
	case r == joiner || r == nonJoiner:
		return previous >= utf8.RuneSelf && unicode.IsPrint(previous)
	case tagFirst <= r && r <= tagLast:
		return previous == blackFlag || tagFirst <= previous && previous <= tagLast
	}
	return unicode.IsPrint(r)
}

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

// Shortened is the beginning of a long text that is quoted in a message. It ends between two characters.
func Shortened(text string) string {
	const shown = 40
	if len(text) <= shown {
		return text
	}
	cut := shown
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "..."
}

// number is a count, of whichever width its owner holds it in.
type number interface{ ~int | ~int64 }

// Grouped writes a number with its thousands parted: 12,345.
func Grouped[N number](n N) string {
	digits := strconv.FormatInt(int64(n), 10)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Rounded is Grouped for a number with a fraction.
func Rounded(n float64) string { return Grouped(int64(n + 0.5)) }

// Counted is a number with its noun: 1 rule, 12,345 rules.
func Counted[N number](n N, noun string) string { return Grouped(n) + " " + Plural(n, noun) }

// Plural is a noun in the number of n.
func Plural[N number](n N, noun string) string { return Verb(n, noun, noun+"s") }

// Verb is one of two forms: that for one, or that for many.
func Verb[N number](n N, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
