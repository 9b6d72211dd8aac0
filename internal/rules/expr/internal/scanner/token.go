package scanner

import "fmt"

// The kinds of tokens that have many texts. The kind of any other token is its text.
const (
	End        = "the end"
	Name       = "a name"
	QuotedName = "a name in backquotes"
	Number     = "a number"
	String     = "a string"
)

// backquote encloses a name that is not a word.
const backquote = '`'

// Span is a place in the source, in bytes.
type Span struct{ Start, End int }

// Token is one word of the source. Text is a string's content after its
// escapes, a name without its backquotes, and the source text of every other token.
type Token struct {
	Span
	Kind string
	Text string
}

// Fault says what is wrong with a token, and where.
type Fault struct {
	Span
	Kind    string // of the token; "" if the source has no such token
	Message string
	Hint    string // what to write instead; may be ""
}

// scanner keeps the first fault. The tokens have no meaning after it.
type scanner struct {
	source string
	fault  *Fault
}

func (s *scanner) fail(at Span, kind, hint, format string, args ...any) {
	if s.fault == nil {
		s.fault = &Fault{at, kind, fmt.Sprintf(format, args...), hint}
	}
}

func (s *scanner) failUTF8(at int, kind string) {
	s.fail(Span{at, at + 1}, kind, "", "the byte 0x%02X is not UTF-8 text", s.source[at])
}
