package expr

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// kind is the sort of a token.
type kind uint8

const (
	tokenEnd kind = iota
	tokenName
	tokenNumber
	tokenString
	tokenOr           // ||
	tokenAnd          // &&
	tokenNot          // !
	tokenEqual        // ==
	tokenNotEqual     // !=
	tokenLess         // <
	tokenLessEqual    // <=
	tokenGreater      // >
	tokenGreaterEqual // >=
	tokenIn           // in
	tokenPlus
	tokenMinus
	tokenTimes
	tokenDivide
	tokenOpen         // (
	tokenClose        // )
	tokenOpenBracket  // [
	tokenCloseBracket // ]
	tokenComma
	tokenColon
	tokenDot
)

var kindTexts = [...]string{
	"the end", "a name", "a number", "a string", "||", "&&", "!", "==", "!=", "<", "<=", ">", ">=", "in",
	"+", "-", "*", "/", "(", ")", "[", "]", ",", ":", ".",
}

// String returns the token's text, or words for tokens that have many.
func (k kind) String() string { return kindTexts[k] }

// token is one word of the source. text is a string's content after its
// escapes, and the source text of every other token.
type token struct {
	span
	kind kind
	text string
}

// symbols are tried in their order: the longer ones first.
var symbols = []kind{
	tokenOr, tokenAnd, tokenEqual, tokenNotEqual, tokenLessEqual, tokenGreaterEqual,
	tokenNot, tokenLess, tokenGreater, tokenPlus, tokenMinus, tokenTimes, tokenDivide, tokenOpen, tokenClose,
	tokenOpenBracket, tokenCloseBracket, tokenComma, tokenColon, tokenDot,
}

// foreign are symbols of other languages, with what stands for them here.
var foreign = []struct{ text, hint string }{
	{"=", "write == to compare"},
	{"&", "write && for and"},
	{"|", "write || for or"},
	{"?", "there is no conditional operator; write two rules, or use && and ||"},
	{"%", "there is no remainder operator"},
	{"“", `write plain quotes: "..."`},
	{"”", `write plain quotes: "..."`},
	{"‘", `write plain quotes: '...'`},
	{"’", `write plain quotes: '...'`},
	{"`", `write plain quotes: "..."`},
	{"${", "variables are written by their names alone"},
}

// tokenize splits the source into tokens; the last one is tokenEnd.
func tokenize(source string) ([]token, error) {
	var tokens []token
	for at := 0; ; {
		for at < len(source) && strings.IndexByte(" \t\r\n", source[at]) >= 0 {
			at++
		}
		t, err := scan(source, at)
		if err != nil {
			return nil, err
		}
		tokens = append(tokens, t)
		if t.kind == tokenEnd {
			return tokens, nil
		}
		at = t.end
	}
}

// scan reads the token that begins at a byte that is not space.
func scan(source string, at int) (token, error) {
	if at == len(source) {
		return token{span: span{at, at}}, nil
	}
	switch c := source[at]; {
	case isNameStart(c):
		end := at + 1
		for end < len(source) && isNamePart(source[end]) {
			end++
		}
		t := token{span{at, end}, tokenName, source[at:end]}
		if t.text == "in" {
			t.kind = tokenIn
		}
		return t, nil
	case isDigit(c):
		return scanNumber(source, at)
	case c == '"' || c == '\'':
		return scanString(source, at)
	}
	rest := source[at:]
	if strings.HasPrefix(rest, "<>") {
		return token{}, foreignError(at, "<>", "write !=")
	}
	for _, k := range symbols {
		if text := k.String(); strings.HasPrefix(rest, text) {
			return token{span{at, at + len(text)}, k, text}, nil
		}
	}
	for _, f := range foreign {
		if strings.HasPrefix(rest, f.text) {
			return token{}, foreignError(at, f.text, f.hint)
		}
	}
	r, size := utf8.DecodeRuneInString(rest)
	if r == utf8.RuneError && size == 1 {
		return token{}, &Error{at, 1, CodeSyntax, fmt.Sprintf("the byte 0x%02X is not UTF-8 text", source[at]), ""}
	}
	hint := ""
	if r >= utf8.RuneSelf {
		hint = `an attribute whose name is not plain letters, digits and _ is written item["name"]`
	}
	return token{}, &Error{at, size, CodeSyntax, fmt.Sprintf("%q has no meaning here", r), hint}
}

func foreignError(at int, text, hint string) *Error {
	return &Error{at, len(text), CodeSyntax, fmt.Sprintf("%q has no meaning here", text), hint}
}

func isDigit(c byte) bool     { return c >= '0' && c <= '9' }
func isNameStart(c byte) bool { return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
func isNamePart(c byte) bool  { return isNameStart(c) || isDigit(c) }

// scanNumber reads digits, an optional fraction and an optional exponent.
func scanNumber(source string, at int) (token, error) {
	end := at
	digits := func() {
		for end < len(source) && isDigit(source[end]) {
			end++
		}
	}
	has := func(ahead int, ok func(byte) bool) bool { return end+ahead < len(source) && ok(source[end+ahead]) }
	digits()
	if has(0, func(c byte) bool { return c == '.' }) && has(1, isDigit) {
		end++
		digits()
	}
	if has(0, func(c byte) bool { return c == 'e' || c == 'E' }) {
		switch {
		case has(1, isDigit):
			end++
			digits()
		case has(1, func(c byte) bool { return c == '+' || c == '-' }) && has(2, isDigit):
			end += 2
			digits()
		}
	}
	if has(0, isNameStart) {
		for has(0, isNamePart) {
			end++
		}
		return token{}, &Error{at, end - at, CodeNumber, fmt.Sprintf("%s is not a number", clip(source[at:end])),
			"numbers are decimal digits, as 12, 0.5 or 1.5e3; a name does not begin with a digit"}
	}
	return token{span{at, end}, tokenNumber, source[at:end]}, nil
}

// clip shortens a text that is quoted in a message, at a rune boundary.
func clip(s string) string {
	const shown = 40
	if len(s) <= shown {
		return s
	}
	cut := shown
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "..."
}
