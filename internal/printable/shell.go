package printable

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Shell makes text one word for a POSIX shell, so that it can be copied into the next command. Characters that cannot be shown
// are written in the $'...' form that bash, zsh and ksh read.
func Shell(text string) string {
	const plain = "@%+=:,./_-"
	if text != "" && strings.IndexFunc(text, func(r rune) bool {
		return !(r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(plain, r)))
	}) < 0 {
		return text
	}
	if Text(text) == text {
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\'' || c == '\\':
			b.WriteString(`\` + string(rune(c)))
		case c < ' ' || c >= 0x7f:
			// Three octal digits are always one byte, whatever follows.
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteString("'")
	return b.String()
}
