package expression

import "strings"

type tokenKind uint8

const (
	tokenEnd tokenKind = iota
	tokenWord
	tokenName  // #name
	tokenValue // :value
	tokenIndex // digits
	tokenMark  // punctuation
)

type token struct {
	kind tokenKind
	text string
}

// keyword reports whether the token is this keyword, in any case.
func (t token) keyword(word string) bool {
	return t.kind == tokenWord && strings.EqualFold(t.text, word)
}

func (t token) mark(text string) bool { return t.kind == tokenMark && t.text == text }

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isWord(c byte) bool   { return isLetter(c) || isDigit(c) || c == '_' }

// lex splits an expression; ok is false, and the last token the culprit, at a
// character that no expression may hold.
func lex(text string) (tokens []token, ok bool) {
	for i := 0; i < len(text); {
		c := text[i]
		start := i
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			i++
			continue
		case isLetter(c) || isDigit(c) || c == '#' || c == ':':
			for i++; i < len(text) && isWord(text[i]); i++ {
			}
			tokens = append(tokens, token{kindOf(text[start:i]), text[start:i]})
			if kind := tokens[len(tokens)-1].kind; kind == tokenEnd {
				return tokens, false
			}
			continue
		case strings.HasPrefix(text[i:], "<>") || strings.HasPrefix(text[i:], "<=") || strings.HasPrefix(text[i:], ">="):
			i += 2
		case strings.IndexByte("=<>()[].,+-", c) >= 0:
			i++
		default:
			return append(tokens, token{tokenEnd, string(c)}), false
		}
		tokens = append(tokens, token{tokenMark, text[start:i]})
	}
	return append(tokens, token{tokenEnd, "<EOF>"}), true
}

// kindOf classifies a run of word characters; tokenEnd for one that is malformed.
func kindOf(text string) tokenKind {
	switch {
	case text[0] == '#' && len(text) > 1:
		return tokenName
	case text[0] == ':' && len(text) > 1:
		return tokenValue
	case isLetter(text[0]):
		return tokenWord
	case isDigit(text[0]) && strings.Trim(text, "0123456789") == "":
		return tokenIndex
	}
	return tokenEnd
}
