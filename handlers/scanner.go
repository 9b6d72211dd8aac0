package handlers

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

// Codes of what can be wrong with a record.
const (
	codeJSON     = "record.json"     // not JSON, or not of a record's shape
	codeValue    = "record.value"    // an attribute that is no DynamoDB value
	codeKeys     = "record.keys"     // keys that are missing or not the table's
	codeImages   = "record.images"   // images that do not fit the event
	codePosition = "record.position" // no stream label or sequence number
	codeTable    = "record.table"    // of another table's stream
)

// fault says why something could not be read.
type fault struct{ code, reason string }

func (f *fault) Error() string { return f.reason }

// scanner goes over JSON once, from pos on. Its methods return false, and leave a
// fault, where something is not as it must be.
type scanner struct {
	src   []byte
	pos   int
	fault *fault
}

func (s *scanner) fail(code, format string, args ...any) bool {
	s.fault = &fault{code, fmt.Sprintf(format, args...) + fmt.Sprintf(" (byte %d)", s.pos)}
	return false
}

// unexpected says what stands where something else must.
func (s *scanner) unexpected(want string) bool {
	if s.pos >= len(s.src) {
		return s.fail(codeJSON, "the JSON ends where %s is expected", want)
	}
	return s.fail(codeJSON, "%q where %s is expected", s.src[s.pos], want)
}

// next passes over white space and returns the byte after it, which it leaves; 0 at the end.
func (s *scanner) next() byte {
	for s.pos < len(s.src) {
		c := s.src[s.pos]
		if c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c
		}
		s.pos++
	}
	return 0
}

func (s *scanner) take(c byte) bool {
	if s.pos < len(s.src) && s.src[s.pos] == c || s.next() == c && c != 0 {
		s.pos++
		return true
	}
	return s.unexpected(string(rune(c)))
}

// text is where a string's content lies, between its quotes.
type text struct {
	from, to int
	escaped  bool // it holds a backslash
	half     bool // it holds half of a surrogate pair: JSON, but no text that DynamoDB stores
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

// text reads a string without making one.
func (s *scanner) text() (text, bool) {
	if s.next() != '"' {
		return text{}, s.unexpected("a string")
	}
	t := text{from: s.pos + 1}
	for i := plain(s.src, t.from); i < len(s.src); {
		switch c := s.src[i]; {
		case c == '"':
			t.to, s.pos = i, i+1
			return t, true
		case c == '\\':
			t.escaped = true
			r, size := escape(s.src[i:])
			t.half = t.half || r == halfPair
			if size == 0 {
				s.pos = i
				return t, s.fail(codeJSON, "a backslash with no character that may follow it")
			}
			i = plain(s.src, i+size)
		case c < ' ':
			s.pos = i
			return t, s.fail(codeJSON, "a control character in a string")
		default:
			i++
		}
	}
	s.pos = len(s.src)
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

// bytes returns a string's content; it shares src unless there are escapes in it.
func (s *scanner) bytes(t text) []byte {
	raw := s.src[t.from:t.to]
	if !t.escaped {
		return raw
	}
	return unescape(raw)
}

// unescape resolves the escapes of a string that was read before.
func unescape(raw []byte) []byte {
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

// object reads an object; member reads the value of each name.
func (s *scanner) object(member func(name text) bool) bool {
	if !s.take('{') {
		return false
	}
	if s.next() == '}' {
		s.pos++
		return true
	}
	for {
		name, ok := s.text()
		if !ok || !s.take(':') || !member(name) {
			return false
		}
		switch s.next() {
		case ',':
			s.pos++
		case '}':
			s.pos++
			return true
		default:
			return s.unexpected(", or }")
		}
	}
}

// array reads an array; member reads each of its values.
func (s *scanner) array(member func() bool) bool {
	if !s.take('[') {
		return false
	}
	if s.next() == ']' {
		s.pos++
		return true
	}
	for {
		if !member() {
			return false
		}
		switch s.next() {
		case ',':
			s.pos++
		case ']':
			s.pos++
			return true
		default:
			return s.unexpected(", or ]")
		}
	}
}

// raw passes over any one value and gives its JSON.
func (s *scanner) raw(to *[]byte) bool {
	s.next()
	from := s.pos
	if !s.skip(0) {
		return false
	}
	*to = s.src[from:s.pos]
	return true
}

// skip passes over any one value.
func (s *scanner) skip(depth int) bool {
	if depth > jsonDepthMax {
		return s.fail(codeJSON, "nested deeper than %d levels", jsonDepthMax)
	}
	switch c := s.next(); {
	case c == '"':
		_, ok := s.text()
		return ok
	case c == '{':
		return s.object(func(text) bool { return s.skip(depth + 1) })
	case c == '[':
		return s.array(func() bool { return s.skip(depth + 1) })
	case c == '-' || c >= '0' && c <= '9':
		return s.number()
	}
	for _, word := range [...]string{"true", "false", "null"} {
		if s.literal(word) {
			return true
		}
	}
	return s.unexpected("a value")
}

// literal passes over the word if it is there.
func (s *scanner) literal(word string) bool {
	s.next()
	if len(s.src)-s.pos < len(word) || string(s.src[s.pos:s.pos+len(word)]) != word {
		return false
	}
	s.pos += len(word)
	return true
}

// number passes over a JSON number.
func (s *scanner) number() bool {
	from := s.pos
	for s.pos < len(s.src) {
		c := s.src[s.pos]
		if (c < '0' || c > '9') && c != '-' && c != '+' && c != '.' && c != 'e' && c != 'E' {
			break
		}
		s.pos++
	}
	raw := s.src[from:s.pos]
	digits := raw
	if digits[0] == '-' {
		digits = digits[1:]
	}
	zeros := len(digits) > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9'
	if len(digits) == 0 || digits[0] == '.' || zeros || !numeric(raw) || dotEnds(raw) {
		s.pos = from
		return s.fail(codeJSON, "%.40q is not a number", raw)
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
