package expr

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const escapesHint = `the escapes are \n \t \r \\ \' \" and \uXXXX`

var simpleEscapes = map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', '\\': '\\', '\'': '\'', '"': '"'}

// scanString reads a quoted string and undoes its escapes.
func scanString(source string, at int) (token, error) {
	quote := source[at]
	var content strings.Builder
	for end := at + 1; end < len(source); {
		switch c := source[end]; {
		case c == quote:
			return token{span{at, end + 1}, tokenString, content.String()}, nil
		case c == '\n' || c == '\r':
			return token{}, &Error{at, end - at, CodeString, "the string does not end on its line", `write \n for a line break`}
		case c == '\\':
			r, length, err := unescape(source, end)
			if err != nil {
				return token{}, err
			}
			content.WriteRune(r)
			end += length
		case c < utf8.RuneSelf:
			content.WriteByte(c)
			end++
		default:
			r, size := utf8.DecodeRuneInString(source[end:])
			if r == utf8.RuneError && size == 1 {
				return token{}, &Error{end, 1, CodeString, fmt.Sprintf("the byte 0x%02X is not UTF-8 text", c), ""}
			}
			content.WriteRune(r)
			end += size
		}
	}
	return token{}, &Error{at, len(source) - at, CodeString, "the string does not end", "close it with " + string(quote)}
}

// unescape reads the escape that begins with the backslash at a byte, and
// returns its length. Two \u that form a surrogate pair are one rune.
func unescape(source string, at int) (r rune, length int, err error) {
	if at+1 == len(source) {
		return 0, 0, &Error{at, 1, CodeString, "the string does not end", escapesHint}
	}
	if plain, ok := simpleEscapes[source[at+1]]; ok {
		return rune(plain), 2, nil
	}
	if source[at+1] != 'u' {
		_, size := utf8.DecodeRuneInString(source[at+1:])
		return 0, 0, &Error{at, 1 + size, CodeString, fmt.Sprintf("%q is not an escape", source[at:at+1+size]), escapesHint}
	}
	r, ok := codeUnit(source, at)
	if !ok {
		return 0, 0, &Error{at, 2, CodeString, `\u needs four hexadecimal digits`, escapesHint}
	}
	if !utf16.IsSurrogate(r) {
		return r, 6, nil
	}
	if low, ok := codeUnit(source, at+6); ok {
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			return pair, 12, nil
		}
	}
	return 0, 0, &Error{at, 6, CodeString, source[at:at+6] + " is half a character", "write the character itself, or both halves"}
}

// codeUnit reads \uXXXX at a byte.
func codeUnit(source string, at int) (rune, bool) {
	if at+6 > len(source) || source[at:at+2] != `\u` {
		return 0, false
	}
	n, err := strconv.ParseUint(source[at+2:at+6], 16, 16)
	return rune(n), err == nil
}
