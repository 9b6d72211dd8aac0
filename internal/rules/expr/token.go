package expr

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// The kinds of tokens that have many texts. The kind of any other token is its text.
const (
	endToken    = "the end"
	nameToken   = "a name"
	quotedToken = "a name in backquotes"
	numberToken = "a number"
	stringToken = "a string"
)

// token is one word of the source. text is a string's content after its
// escapes, a name without its backquotes, and the source text of every other token.
type token struct {
	span
	kind string
	text string
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

// tokenize splits the source into tokens; the last one is the end.
func (p *parser) tokenize() {
	for at := 0; p.err == nil; {
		at = len(p.source) - len(strings.TrimLeft(p.source[at:], " \t\r\n"))
		t := p.scan(at)
		p.tokens = append(p.tokens, t)
		if t.kind == endToken {
			return
		}
		at = t.end
	}
}

// scan reads the token that begins at a byte that is not space.
func (p *parser) scan(at int) token {
	rest := p.source[at:]
	if rest == "" {
		return token{span{at, at}, endToken, ""}
	}
	if name := nameText.FindString(rest); name != "" {
		kind := nameToken
		if name == "in" {
			kind = name
		}
		return token{span{at, at + len(name)}, kind, name}
	}
	if number := numberText.FindStringSubmatch(rest); number != nil {
		place := span{at, at + len(number[0])}
		if number[1] != "" {
			p.fail(place, CodeNumber, "numbers are decimal digits, as 12, 0.5 or 1.5e3; a name does not begin with a digit",
				"%s is not a number", clip(number[0]))
		}
		return token{place, numberToken, number[0]}
	}
	if rest[0] == '"' || rest[0] == '\'' {
		return p.scanString(at)
	}
	if rest[0] == backquote {
		return p.scanQuotedName(at)
	}
	return p.scanSymbol(at, rest)
}

// backquote encloses a name that is not a word.
const backquote = '`'

// scanQuotedName reads a name in backquotes: it holds any other character, and ends on its line.
func (p *parser) scanQuotedName(at int) token {
	name, _, closed := strings.Cut(p.source[at+1:], string(backquote))
	place := span{at, at + len(name) + 2}
	if line, _, more := strings.Cut(name, "\n"); more || !closed {
		place.end = at + 1 + len(line)
		p.fail(place, CodeSyntax, "write `user-name`; a text stands in quotes: \"...\"", "the name in backquotes that begins here does not end")
	}
	if name == "" {
		p.fail(place, CodeSyntax, "write an attribute's name between them, as in `user-name`", "there is no name between these backquotes")
	}
	for i, r := range name {
		if _, size := utf8.DecodeRuneInString(name[i:]); r == utf8.RuneError && size == 1 {
			p.failUTF8(at+1+i, CodeSyntax)
		}
	}
	return token{place, quotedToken, name}
}

// scanSymbol reads a symbol. It explains any other character.
func (p *parser) scanSymbol(at int, rest string) token {
	for _, symbol := range symbols {
		if strings.HasPrefix(rest, symbol) && !strings.HasPrefix(rest, "<>") {
			return token{span{at, at + len(symbol)}, symbol, symbol}
		}
	}
	for _, f := range foreign {
		if strings.HasPrefix(rest, f.text) {
			p.fail(span{at, at + len(f.text)}, CodeSyntax, f.hint, "%q has no meaning here", f.text)
		}
	}
	r, size := utf8.DecodeRuneInString(rest)
	hint := ""
	switch {
	case r == utf8.RuneError && size == 1:
		p.failUTF8(at, CodeSyntax)
	case r >= utf8.RuneSelf:
		hint = `an attribute whose name is not plain letters, digits and _ stands in backquotes: ` + "`user-name`"
	}
	p.fail(span{at, at + size}, CodeSyntax, hint, "%q has no meaning here", r)
	return token{}
}

func (p *parser) failUTF8(at int, code string) {
	p.fail(span{at, at + 1}, code, "", "the byte 0x%02X is not UTF-8 text", p.source[at])
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
