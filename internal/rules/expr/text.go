package expr

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const escapesHint = `the escapes are \n \t \r \\ \' \" and \uXXXX`

var simpleEscapes = map[byte]rune{'n': '\n', 't': '\t', 'r': '\r', '\\': '\\', '\'': '\'', '"': '"'}

// scanString reads a quoted string and undoes its escapes.
func (p *parser) scanString(at int) token {
	quote := p.source[at]
	var content strings.Builder
	for end := at + 1; end < len(p.source) && p.err == nil; {
		r, size := utf8.DecodeRuneInString(p.source[end:])
		switch {
		case p.source[end] == quote:
			return token{span{at, end + 1}, stringToken, content.String()}
		case r == '\n' || r == '\r':
			p.fail(span{at, end}, CodeString, `write \n for a line break`, "the string does not end on its line")
		case r == '\\':
			r, size = p.unescape(end)
		case r == utf8.RuneError && size == 1:
			p.failUTF8(end, CodeString)
		}
		content.WriteRune(r)
		end += size
	}
	p.fail(span{at, len(p.source)}, CodeString, "close it with "+string(quote), "the string does not end")
	return token{}
}

// unescape reads the escape that begins with the backslash at a byte, and
// returns its length. Two \u that form a surrogate pair are one rune.
func (p *parser) unescape(at int) (r rune, length int) {
	fail := func(length int, format string, args ...any) {
		p.fail(span{at, at + length}, CodeString, escapesHint, format, args...)
	}
	if at+1 == len(p.source) {
		fail(1, "the string does not end")
		return 0, 1
	}
	if plain, ok := simpleEscapes[p.source[at+1]]; ok {
		return plain, 2
	}
	if p.source[at+1] != 'u' {
		_, size := utf8.DecodeRuneInString(p.source[at+1:])
		fail(1+size, "%q is not an escape", p.source[at:at+1+size])
		return 0, 1
	}
	r, ok := p.codeUnit(at)
	if !ok {
		fail(2, `\u needs four hexadecimal digits`)
	}
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	if low, ok := p.codeUnit(at + 6); ok {
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			return pair, 12
		}
	}
	p.fail(span{at, at + 6}, CodeString, "write the character itself, or both halves", "%s is half a character", p.source[at:at+6])
	return 0, 6
}

// codeUnit reads \uXXXX at a byte.
func (p *parser) codeUnit(at int) (rune, bool) {
	if at+6 > len(p.source) || p.source[at:at+2] != `\u` {
		return 0, false
	}
	n, err := strconv.ParseUint(p.source[at+2:at+6], 16, 16)
	return rune(n), err == nil
}
