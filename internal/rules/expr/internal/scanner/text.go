package scanner

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const escapesHint = `the escapes are \n \t \r \\ \' \" and \uXXXX`

var simpleEscapes = map[byte]rune{'n': '\n', 't': '\t', 'r': '\r', '\\': '\\', '\'': '\'', '"': '"'}

// scanString reads a quoted string and undoes its escapes.
func (s *scanner) scanString(at int) Token {
	quote := s.source[at]
	var content strings.Builder
	for end := at + 1; end < len(s.source) && s.fault == nil; {
		r, size := utf8.DecodeRuneInString(s.source[end:])
		switch {
		case s.source[end] == quote:
			return Token{Span{at, end + 1}, String, content.String()}
		case r == '\n' || r == '\r':
			s.fail(Span{at, end}, String, `write \n for a line break`, "the string does not end on its line")
		case r == '\\':
			r, size = s.unescape(end)
		case r == utf8.RuneError && size == 1:
			s.failUTF8(end, String)
		}
		content.WriteRune(r)
		end += size
	}
	s.fail(Span{at, len(s.source)}, String, "close it with "+string(quote), "the string does not end")
	return Token{}
}

// unescape reads the escape that begins with the backslash at a byte, and
// returns its length. Two \u that form a surrogate pair are one rune.
func (s *scanner) unescape(at int) (r rune, length int) {
	fail := func(length int, format string, args ...any) {
		s.fail(Span{at, at + length}, String, escapesHint, format, args...)
	}
	if at+1 == len(s.source) {
		fail(1, "the string does not end")
		return 0, 1
	}
	if plain, ok := simpleEscapes[s.source[at+1]]; ok {
		return plain, 2
	}
	if s.source[at+1] != 'u' {
		_, size := utf8.DecodeRuneInString(s.source[at+1:])
		fail(1+size, "%q is not an escape", s.source[at:at+1+size])
		return 0, 1
	}
	r, ok := s.codeUnit(at)
	if !ok {
		fail(2, `\u needs four hexadecimal digits`)
	}
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	if low, ok := s.codeUnit(at + 6); ok {
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			return pair, 12
		}
	}
	s.fail(Span{at, at + 6}, String, "write the character itself, or both halves", "%s is half a character", s.source[at:at+6])
	return 0, 6
}

// codeUnit reads \uXXXX at a byte.
func (s *scanner) codeUnit(at int) (rune, bool) {
	if at+6 > len(s.source) || s.source[at:at+2] != `\u` {
		return 0, false
	}
	n, err := strconv.ParseUint(s.source[at+2:at+6], 16, 16)
	return rune(n), err == nil
}
