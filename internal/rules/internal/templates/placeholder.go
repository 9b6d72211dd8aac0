package templates

import (
	"regexp"
	"slices"
	"strings"
)

// Placeholder is a part of a template that other tools take for a variable.
// To dynamill it is a constant, so that no item would fit the template.
type Placeholder struct {
	Offset, Length int // bytes in the template
	Name           string
	Certain        bool // it has a mark on both sides: $name and :name may well be parts of a key
}

// Placeholders of other tools, at the beginning of a text.
var (
	enclosedName = regexp.MustCompile(`^(?:<+ *([A-Za-z_][\w.-]*) *>+|\{+ *\.?([A-Za-z_][\w.-]*) *\}+|%([A-Za-z_][\w.-]*)%)`)
	prefixedName = regexp.MustCompile(`^[$:]([A-Za-z_]\w*)`)
	percentCode  = regexp.MustCompile(`^%[0-9A-Fa-f]{2}%`) // of a text that is percent-encoded, as in %C3%A9
)

// Placeholders finds the placeholders of a template, outside its variables and escapes.
func Placeholders(text string) []Placeholder {
	var found []Placeholder
	for at := 0; at < len(text); {
		length := 1
		if _, kept := escaped(text[at:]); kept > 0 {
			length = kept
		} else if strings.HasPrefix(text[at:], VariableMark) {
			end := variableEnd(text[at:])
			if end < 0 {
				return found // Parse reports it
			}
			length = end + 1
		} else if p, ok := placeholderAt(text, at); ok {
			found = append(found, p)
			length = p.Length
		}
		at += length
	}
	return found
}

func placeholderAt(text string, at int) (Placeholder, bool) {
	rest := text[at:]
	if m := enclosedName.FindStringSubmatch(rest); m != nil && !percentCode.MatchString(rest) {
		return Placeholder{Offset: at, Length: len(m[0]), Name: variableName(m[1] + m[2] + m[3]), Certain: true}, true
	}
	if m := prefixedName.FindStringSubmatch(rest); m != nil && (rest[0] == '$' || !separates(text, at)) {
		return Placeholder{Offset: at, Length: len(m[0]), Name: m[1]}, true
	}
	return Placeholder{}, false
}

// separates reports whether a colon follows a letter, a digit or a colon: it then
// parts two words, as in "CONFIG:global".
func separates(text string, colon int) bool {
	if colon == 0 {
		return false
	}
	before := text[colon-1]
	return before == ':' || before != '_' && (IsName(text[colon-1:colon]) || before >= '0' && before <= '9')
}

// variableName makes a variable's name of a placeholder's: user-id becomes user_id.
func variableName(name string) string {
	return strings.NewReplacer("-", "_", ".", "_").Replace(strings.TrimRight(name, ".-"))
}

// Corrected returns the template with its placeholders written as variables.
func Corrected(text string, found []Placeholder) string {
	var b strings.Builder
	at := 0
	for _, p := range found {
		b.WriteString(text[at:p.Offset])
		b.WriteString(VariableMark + p.Name + "}")
		at = p.Offset + p.Length
	}
	b.WriteString(text[at:])
	return b.String()
}

// KeptAsText is the template with its placeholders escaped: all, or the certain ones.
func KeptAsText(text string, all bool) string {
	for {
		found := Placeholders(text)
		i := slices.IndexFunc(found, func(p Placeholder) bool { return all || p.Certain })
		if i < 0 {
			return text
		}
		text = text[:found[i].Offset] + `\` + text[found[i].Offset:]
	}
}
