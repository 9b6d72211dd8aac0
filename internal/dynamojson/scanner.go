// Package dynamojson reads and writes DynamoDB's JSON, in which a value names its type: {"S": "text"}. It imports change only.
// For speed a Scanner validates everything in one pass, and its caller makes values only of the attributes that it needs.
package dynamojson

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonDepthMax bounds the nesting of JSON that is passed over: more than any item has, less than a stack holds.
const jsonDepthMax = 10_000

// The codes of a fault, as a record with it is parked.
const (
	CodeJSON  = "record.json"  // not JSON, or not of a record's shape
	CodeValue = "record.value" // an attribute that is no DynamoDB value
)

// Fault says why something could not be read.
type Fault struct {
	Code   string
	Reason string // with the place: the byte

	path, problem string // inside a value, and without the place
}

func (f *Fault) Error() string { return f.Reason }

// Scanner goes over JSON once, from Pos on. A method that returns false leaves a Fault.
type Scanner struct {
	Src   []byte
	Pos   int
	Fault *Fault

	binary []byte // the last content of a B
}

// Fail leaves a fault at the place that is reached.
func (s *Scanner) Fail(code, format string, args ...any) bool {
	problem := fmt.Sprintf(format, args...)
	s.Fault = &Fault{Code: code, Reason: fmt.Sprintf("%s (byte %d)", problem, s.Pos), problem: problem}
	return false
}

// inside notes where in a value the fault lies, from the innermost place outwards.
func (s *Scanner) inside(place string) bool {
	s.Fault.path = place + s.Fault.path
	return false
}

// unexpected says what stands where something else must.
func (s *Scanner) unexpected(want string) bool {
	if s.Pos >= len(s.Src) {
		return s.Fail(CodeJSON, "the JSON ends where %s is expected", want)
	}
	return s.Fail(CodeJSON, "%q where %s is expected", s.Src[s.Pos], want)
}

// Next passes over white space and returns the byte after it, which it leaves; 0 at the end.
func (s *Scanner) Next() byte {
	for s.Pos < len(s.Src) {
		c := s.Src[s.Pos]
		if c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c
		}
		s.Pos++
	}
	return 0
}

func (s *Scanner) take(c byte) bool {
	if s.Pos < len(s.Src) && s.Src[s.Pos] == c || s.Next() == c && c != 0 {
		s.Pos++
		return true
	}
	return s.unexpected(string(rune(c)))
}

// Text is where a string's content lies, between its quotes.
type Text struct {
	From, To int
	Escaped  bool // it holds a backslash
	Half     bool // it holds half of a surrogate pair: JSON, but no text that DynamoDB stores
}

// Bit patterns that look at eight bytes at once.
const (
	everyByte = 0x0101010101010101
	highBits  = 0x80 * everyByte
)

// plain returns the next quote, backslash or control character of the string that goes on at i, or a place close before the
// end of src. The first byte that the arithmetic reports is right; a borrow can only spoil bytes after it.
func plain(src []byte, i int) int {
	for ; i+8 <= len(src); i += 8 {
		w := binary.LittleEndian.Uint64(src[i:])
		quote, slash := w^('"'*everyByte), w^('\\'*everyByte)
		hit := ((quote-everyByte)&^quote | (slash-everyByte)&^slash | (w-' '*everyByte)&^w) & highBits
		if hit != 0 {
			return i + bits.TrailingZeros64(hit)>>3
		}
	}
	return i
}

// Text reads a string without making one.
func (s *Scanner) Text() (Text, bool) {
	if s.Next() != '"' {
		return Text{}, s.unexpected("a string")
	}
	t := Text{From: s.Pos + 1}
	for i := plain(s.Src, t.From); i < len(s.Src); {
		switch c := s.Src[i]; {
		case c == '"':
			t.To, s.Pos = i, i+1
			return t, true
		case c == '\\':
			t.Escaped = true
			r, size := escape(s.Src[i:])
			t.Half = t.Half || r == halfPair
			if size == 0 {
				s.Pos = i
				return t, s.Fail(CodeJSON, "a backslash with no character that may follow it")
			}
			i = plain(s.Src, i+size)
		case c < ' ':
			s.Pos = i
			return t, s.Fail(CodeJSON, "a control character in a string")
		default:
			i++
		}
	}
	s.Pos = len(s.Src)
	return t, s.unexpected("the end of a string")
}

// halfPair stands for a surrogate without its other half. It is written as U+FFFD.
const halfPair rune = -1

// escapes are the characters that a backslash and one letter stand for.
var escapes = [256]rune{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// escape reads the escape sequence that src begins with. The size is 0 if it is none.
func escape(src []byte) (r rune, size int) {
	if len(src) < 2 {
		return 0, 0
	}
	if r = escapes[src[1]]; r != 0 {
		return r, 2
	}
	first, ok := codeUnit(src)
	switch {
	case !ok:
		return 0, 0
	case !utf16.IsSurrogate(first):
		return first, 6
	}
	second, _ := codeUnit(src[6:])
	if r = utf16.DecodeRune(first, second); r == utf8.RuneError {
		return halfPair, 6
	}
	return r, 12
}

// codeUnit reads the \uXXXX that src begins with.
func codeUnit(src []byte) (r rune, ok bool) {
	if len(src) < 6 || src[0] != '\\' || src[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(src[2:6]), 16, 16)
	return rune(n), err == nil
}

// Bytes returns a string's content; it shares src unless there are escapes in it.
func (s *Scanner) Bytes(t Text) []byte {
	raw := s.Src[t.From:t.To]
	if !t.Escaped {
		return raw
	}
	return Unescape(raw)
}

// Unescape resolves the escapes of a string that was read before.
func Unescape(raw []byte) []byte {
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); {
		j := plain(raw, i)
		out = append(out, raw[i:j]...)
		if i = j; i == len(raw) {
			break
		}
		if raw[i] != '\\' {
			out = append(out, raw[i])
			i++
			continue
		}
		r, size := escape(raw[i:])
		out = utf8.AppendRune(out, r)
		i += size
	}
	return out
}

// Object reads an object; member reads the value of each name.
func (s *Scanner) Object(member func(name Text) bool) bool {
	return s.sequence('{', '}', func() bool {
		name, ok := s.Text()
		return ok && s.take(':') && member(name)
	})
}

// Array reads an array; member reads each of its values.
func (s *Scanner) Array(member func() bool) bool { return s.sequence('[', ']', member) }

// sequence reads what two brackets enclose, with commas between.
func (s *Scanner) sequence(opening, closing byte, member func() bool) bool {
	if !s.take(opening) {
		return false
	}
	if s.Next() == closing {
		s.Pos++
		return true
	}
	for member() {
		switch s.Next() {
		case ',':
			s.Pos++
		case closing:
			s.Pos++
			return true
		default:
			return s.unexpected(", or " + string(rune(closing)))
		}
	}
	return false
}

// Raw passes over any one value and gives its JSON.
func (s *Scanner) Raw(to *[]byte) bool {
	s.Next()
	from := s.Pos
	if !s.Skip(0) {
		return false
	}
	*to = s.Src[from:s.Pos]
	return true
}

// Skip passes over any one value.
func (s *Scanner) Skip(depth int) bool {
	if depth > jsonDepthMax {
		return s.Fail(CodeJSON, "nested deeper than %d levels", jsonDepthMax)
	}
	switch c := s.Next(); {
	case c == '"':
		_, ok := s.Text()
		return ok
	case c == '{':
		return s.Object(func(Text) bool { return s.Skip(depth + 1) })
	case c == '[':
		return s.Array(func() bool { return s.Skip(depth + 1) })
	case c == '-' || c >= '0' && c <= '9':
		return s.number()
	}
	for _, word := range [...]string{"true", "false", "null"} {
		if s.Literal(word) {
			return true
		}
	}
	return s.unexpected("a value")
}

// Part reads a part of a record. It notes a fault and passes over the part, so that the caller still reads the others.
func (s *Scanner) Part(note **Fault, read func() bool) bool {
	from := s.Pos
	if read() {
		return true
	}
	if *note == nil {
		*note = s.Fault
	}
	s.Pos = from
	return s.Skip(0)
}

// Word reads a string. It passes over any other value and leaves nothing.
func (s *Scanner) Word(out *[]byte) bool {
	if s.Next() != '"' {
		return s.Skip(0)
	}
	t, ok := s.Text()
	if ok {
		*out = s.Bytes(t)
	}
	return ok
}

// AtEnd reports whether nothing follows but white space.
func (s *Scanner) AtEnd() bool { return s.Next() == 0 && s.Pos >= len(s.Src) }

// Literal passes over the word if it is there.
func (s *Scanner) Literal(word string) bool {
	s.Next()
	if len(s.Src)-s.Pos < len(word) || string(s.Src[s.Pos:s.Pos+len(word)]) != word {
		return false
	}
	s.Pos += len(word)
	return true
}

// number passes over a JSON number.
func (s *Scanner) number() bool {
	end := s.Pos
	for end < len(s.Src) && strings.IndexByte("0123456789+-.eE", s.Src[end]) >= 0 {
		end++
	}
	if !json.Valid(s.Src[s.Pos:end]) {
		return s.Fail(CodeJSON, "%.40q is not a number", s.Src[s.Pos:])
	}
	s.Pos = end
	return true
}

// numeric reports whether a text is a number as DynamoDB reads it: unlike in JSON, a point needs digits on one side
// only, and zeros may precede other digits.
func numeric(text []byte) bool {
	text = bytes.TrimPrefix(text, []byte("-"))
	end := digitsEnd(text, 0)
	digits := end
	if end < len(text) && text[end] == '.' {
		point := end
		end = digitsEnd(text, point+1)
		digits += end - point - 1
	}
	if digits == 0 || end == len(text) {
		return digits > 0
	}
	if text[end]|0x20 != 'e' {
		return false
	}
	exponent := end + 1
	if exponent < len(text) && (text[exponent] == '-' || text[exponent] == '+') {
		exponent++
	}
	return exponent < len(text) && digitsEnd(text, exponent) == len(text)
}

func digitsEnd(src []byte, i int) int {
	for i < len(src) && src[i]-'0' <= 9 {
		i++
	}
	return i
}
