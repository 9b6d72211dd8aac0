// Package scanner splits the source text of an expression into tokens. It knows what numbers, names and quoted
// texts look like, and not what follows what. It imports internal/printable only.
package scanner

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/dynamill/dynamill/internal/printable"
)

// Scan splits the source into tokens; the last one is the end. There are none if there is a fault.
func Scan(source string) ([]Token, *Fault) {
	s := scanner{source: source}
	var tokens []Token
	for at := 0; s.fault == nil; {
		at = len(source) - len(strings.TrimLeft(source[at:], " \t\r\n"))
		t := s.scan(at)
		tokens = append(tokens, t)
		if t.Kind == End {
			return tokens, nil
		}
		at = t.End
	}
	return nil, s.fault
}

// symbols are tried in their order: the longer ones first.
var symbols = []string{"||", "&&", "==", "!=", "<=", ">=", "!", "<", ">", "+", "-", "*", "/", "(", ")", "[", "]", ",", ":", "."}

// foreign are symbols of other languages, with what stands for them here.
var foreign = []struct{ text, hint string }{
	{"<>", "write !="},
	{"=", "write == to compare"},
	{"&", "write && for and"},
	{"|", "write || for or"},
	{"?", "there is no conditional operator: use && and ||, or two rules with a `where` that each write an attribute of their own"},
	{"%", "there is no remainder operator"},
	{"“", `write plain quotes: "..."`},
	{"”", `write plain quotes: "..."`},
	{"‘", `write plain quotes: '...'`},
	{"’", `write plain quotes: '...'`},
	{"${", "variables are written by their names alone"},
}

var (
	nameText   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*`)
	numberText = regexp.MustCompile(`^[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?([A-Za-z_][A-Za-z0-9_]*)?`)
)

// scan reads the token that begins at a byte that is not space.
func (s *scanner) scan(at int) Token {
	rest := s.source[at:]
	if rest == "" {
		return Token{Span{at, at}, End, ""}
	}
	if name := nameText.FindString(rest); name != "" {
		kind := Name
		if name == "in" {
			kind = name
		}
		return Token{Span{at, at + len(name)}, kind, name}
	}
	if number := numberText.FindStringSubmatch(rest); number != nil {
		place := Span{at, at + len(number[0])}
		if number[1] != "" {
			s.fail(place, Number, "numbers are decimal digits, as 12, 0.5 or 1.5e3; a name does not begin with a digit",
				"%s is not a number", printable.Shortened(number[0]))
		}
		return Token{place, Number, number[0]}
	}
	if rest[0] == '"' || rest[0] == '\'' {
		return s.scanString(at)
	}
	if rest[0] == backquote {
		return s.scanQuotedName(at)
	}
	return s.scanSymbol(at, rest)
}

// scanQuotedName reads a name in backquotes: it holds any other character, and ends on its line.
func (s *scanner) scanQuotedName(at int) Token {
	name, _, closed := strings.Cut(s.source[at+1:], string(backquote))
	place := Span{at, at + len(name) + 2}
	if line, _, more := strings.Cut(name, "\n"); more || !closed {
		place.End = at + 1 + len(line)
		s.fail(place, QuotedName, "write `user-name`; a text stands in quotes: \"...\"", "the name in backquotes that begins here does not end")
	}
	if name == "" {
		s.fail(place, QuotedName, "write an attribute's name between them, as in `user-name`", "there is no name between these backquotes")
	}
	for i, r := range name {
		if _, size := utf8.DecodeRuneInString(name[i:]); r == utf8.RuneError && size == 1 {
			s.failUTF8(at+1+i, QuotedName)
		}
	}
	return Token{place, QuotedName, name}
}

// scanSymbol reads a symbol. It explains any other character.
func (s *scanner) scanSymbol(at int, rest string) Token {
	for _, symbol := range symbols {
		if strings.HasPrefix(rest, symbol) && !strings.HasPrefix(rest, "<>") {
			return Token{Span{at, at + len(symbol)}, symbol, symbol}
		}
	}
	for _, f := range foreign {
		if strings.HasPrefix(rest, f.text) {
			s.fail(Span{at, at + len(f.text)}, "", f.hint, "%q has no meaning here", f.text)
		}
	}
	r, size := utf8.DecodeRuneInString(rest)
	hint := ""
	switch {
	case r == utf8.RuneError && size == 1:
		s.failUTF8(at, "")
	case r >= utf8.RuneSelf:
		hint = `an attribute whose name is not plain letters, digits and _ stands in backquotes: ` + "`user-name`"
	}
	s.fail(Span{at, at + size}, "", hint, "%q has no meaning here", r)
	return Token{}
}

// ClosingBrace returns the byte of the } that ends the expression which begins at a byte of a text; -1 if there is
// none. A } inside a string or a name in backquotes does not end it.
func ClosingBrace(text string, begin int) int {
	quote := byte(0)
	for at := begin; at < len(text); at++ {
		switch c := text[at]; {
		case quote != 0 && quote != backquote && c == '\\':
			at++
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\'' || c == backquote):
			quote = c
		case quote == 0 && c == '}':
			return at
		}
	}
	return -1
}
