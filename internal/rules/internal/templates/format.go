package templates

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/dynamill/dynamill/internal/decimal"
)

// Format says how a key holds the value of a variable.
type Format struct {
	Width int // of a number, padded to so many digits with zeros; 0: the text as it is
	Case  Case
}

// Case is the letter case in which keys hold texts.
type Case uint8

// The cases.
const (
	AsIs Case = iota
	Lower
	Upper
)

// caseWords are the words for them in a rule file, "" for none.
var caseWords = []string{"", "lower", "upper"}

// CaseOf reads the word for a case.
func CaseOf(word string) (Case, bool) {
	i := slices.Index(caseWords, word)
	return Case(max(i, 0)), i > 0
}

// Of returns a text in the case, character by character.
func (c Case) Of(text string) string {
	if c == AsIs {
		return text
	}
	return strings.Map(c.char, text)
}

// char returns a character in the case.
func (c Case) char(char rune) rune {
	switch c {
	case Lower:
		return unicode.ToLower(char)
	case Upper:
		return unicode.ToUpper(char)
	}
	return char
}

// String is the word for the case in a rule file; "" for none.
func (c Case) String() string { return caseWords[c] }

// isOf reports whether a text is in the case. It allocates nothing.
func (c Case) isOf(text string) bool {
	return c == AsIs || !strings.ContainsFunc(text, func(char rune) bool { return c.char(char) != char })
}

// IsLike reports whether keys of either format hold a value by one text, but for zeros before it.
func (f Format) IsLike(other Format) bool {
	return f.Case == other.Case && (f.Width > 0) == (other.Width > 0)
}

// String is how a template says the format, behind the variable's name.
func (f Format) String() string {
	switch {
	case f.Width > 0:
		return fmt.Sprintf(":0%d", f.Width)
	case f.Case != AsIs:
		return ":" + f.Case.String()
	}
	return ""
}

// parseFormat reads what follows the colon.
func parseFormat(text string) (Format, bool) {
	if c, ok := CaseOf(text); ok {
		return Format{Case: c}, true
	}
	if len(text) < 2 || len(text) > 3 || text[0] != '0' || text[1] == '0' {
		return Format{}, false
	}
	width, err := strconv.Atoi(text[1:])
	return Format{Width: width}, err == nil && width <= decimal.DigitsMax
}

// read returns the value of which a key holds this text. It reports false if a key of the format never holds the text.
func (f Format) read(text string) (value string, ok bool) {
	if f.Width == 0 {
		return text, f.Case.isOf(text)
	}
	if !f.isPadded(text) {
		return "", false
	}
	zeros := 0
	for zeros < len(text)-1 && text[zeros] == '0' {
		zeros++
	}
	return text[zeros:], true
}

// isPadded reports whether a text is as many digits as the format has.
func (f Format) isPadded(text string) bool {
	if len(text) != f.Width {
		return false
	}
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return true
}

// write returns the text that a key holds of a value. It reports false if the value has more digits than the format.
func (f Format) write(value string) (text string, ok bool) {
	if f.Width == 0 || len(value) == f.Width {
		return value, true
	}
	if len(value) > f.Width {
		return "", false
	}
	return strings.Repeat("0", f.Width-len(value)) + value, true
}
