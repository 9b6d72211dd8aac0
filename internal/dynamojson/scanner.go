// Package dynamojson reads and writes DynamoDB's JSON, in which a value names its
// type: {"S": "text"}. It imports change only. The reading is its own because of
// speed: a Scanner goes over the JSON once and validates everything, and its caller
// makes values only of the attributes that it needs.
package dynamojson

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonDepthMax bounds the nesting of JSON that is only passed over: far more
// than any item has (32 levels of two objects each), far less than a stack holds.
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

// Scanner goes over JSON once, from Pos on. Its methods return false, and leave a
// Fault, where something is not as it must be.
type Scanner struct {
	Src   []byte
	Pos   int
	Fault *Fault
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

func (s *Scanner) member(index int) bool { return s.inside(fmt.Sprintf("[%d]", index)) }

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

// plain returns where the string that goes on at i has its next quote, backslash
// or control character, or a place close before the end of src. The first byte that
// the arithmetic reports is right; a borrow can only spoil bytes after it.
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

// escape reads the escape sequence that src begins with. The size is 0 if it is none.
func escape(src []byte) (r rune, size int) {
	if len(src) < 2 {
		return 0, 0
	}
	switch src[1] {
	case '"', '\\', '/':
		return rune(src[1]), 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		first, ok := hex4(src[2:])
		if !ok {
			return 0, 0
		}
		if !utf16.IsSurrogate(first) {
			return first, 6
		}
		if len(src) < 12 || src[6] != '\\' || src[7] != 'u' {
			return halfPair, 6
		}
		second, ok := hex4(src[8:])
		if r = utf16.DecodeRune(first, second); !ok || r == utf8.RuneError {
			return halfPair, 6
		}
		return r, 12
	}
	return 0, 0
}

func hex4(src []byte) (r rune, ok bool) {
	if len(src) < 4 {
		return 0, false
	}
	for _, c := range src[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
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
	if !s.take('{') {
		return false
	}
	if s.Next() == '}' {
		s.Pos++
		return true
	}
	for {
		name, ok := s.Text()
		if !ok || !s.take(':') || !member(name) {
			return false
		}
		switch s.Next() {
		case ',':
			s.Pos++
		case '}':
			s.Pos++
			return true
		default:
			return s.unexpected(", or }")
		}
	}
}

// Array reads an array; member reads each of its values.
func (s *Scanner) Array(member func() bool) bool {
	if !s.take('[') {
		return false
	}
	if s.Next() == ']' {
		s.Pos++
		return true
	}
	for {
		if !member() {
			return false
		}
		switch s.Next() {
		case ',':
			s.Pos++
		case ']':
			s.Pos++
			return true
		default:
			return s.unexpected(", or ]")
		}
	}
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

// Part reads a part of a record. It notes what is wrong with it, and passes over it as
// plain JSON, so that the caller still reads the other parts (key and position above all).
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
	from := s.Pos
	for s.Pos < len(s.Src) {
		c := s.Src[s.Pos]
		if (c < '0' || c > '9') && c != '-' && c != '+' && c != '.' && c != 'e' && c != 'E' {
			break
		}
		s.Pos++
	}
	raw := s.Src[from:s.Pos]
	digits := raw
	if digits[0] == '-' {
		digits = digits[1:]
	}
	zeros := len(digits) > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9'
	if len(digits) == 0 || digits[0] == '.' || zeros || !numeric(raw) || dotEnds(raw) {
		s.Pos = from
		return s.Fail(CodeJSON, "%.40q is not a number", raw)
	}
	return true
}

// dotEnds reports a point without digits after it, which JSON forbids and DynamoDB's N does not.
func dotEnds(raw []byte) bool {
	for i, c := range raw {
		if c == '.' {
			return i+1 == len(raw) || raw[i+1] < '0' || raw[i+1] > '9'
		}
	}
	return false
}

// numeric reports whether a text is a decimal number, with or without fraction and exponent.
func numeric(n []byte) bool {
	i, digits := 0, 0
	if i < len(n) && n[i] == '-' {
		i++
	}
	for ; i < len(n) && n[i]-'0' <= 9; i++ {
		digits++
	}
	if i < len(n) && n[i] == '.' {
		for i++; i < len(n) && n[i]-'0' <= 9; i++ {
			digits++
		}
	}
	if digits == 0 || i == len(n) {
		return digits > 0
	}
	if n[i]|0x20 != 'e' {
		return false
	}
	i++
	if i < len(n) && (n[i] == '-' || n[i] == '+') {
		i++
	}
	from := i
	for i < len(n) && n[i]-'0' <= 9 {
		i++
	}
	return i > from && i == len(n)
}
