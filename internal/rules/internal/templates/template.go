// Package templates reads the templates of keys: it parses keys by them, renders keys, and
// compares templates. It knows nothing of entities and rules.
package templates

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// textBytesMax bounds a template's text.
const textBytesMax = 256

// VariablesMax is the most variables that one entity's key may have.
const VariablesMax = 8

// literalPart is the slot of a part that is no variable.
const literalPart = -1

// part is one piece of a template: a literal, or a variable in a slot of the entity.
type part struct {
	literal string
	slot    int
	rest    bool // a last variable that takes what is left, # included
	format  Format
}

// Template is the compiled form of one key attribute's text, such as
// "COMMENT#${createdAt}#${commentId}". Between two variables there is always a literal.
type Template struct {
	Text  string // as the file has it
	parts []part
}

// Fault is a fault in a template's text.
type Fault struct {
	Offset, Length      int // bytes in the text
	Code, Message, Hint string
}

// Parse reads a template of the shape. Variables get slots by name: the templates of a shape share them. Its constants, and the
// variables that say nothing else, are in the given case. A placeholder of another tool is a constant here; the checker
// refuses it before.
func (sh *Shape) Parse(text string, in Case) (Template, *Fault) {
	t := Template{Text: text}
	if text == "" {
		return t, &Fault{Code: "template.empty", Message: "a key template cannot be empty: DynamoDB stores no empty keys"}
	}
	if len(text) > textBytesMax {
		return t, &Fault{Length: len(text), Code: "template.too_long",
			Message: fmt.Sprintf("this key template has %d bytes; at most %d are allowed", len(text), textBytesMax)}
	}
	var literal []byte
	flush := func() {
		if len(literal) > 0 {
			t.parts = append(t.parts, part{literal: in.Of(string(literal)), slot: literalPart})
			literal = nil
		}
	}
	for at := 0; at < len(text); {
		if kept, length := escaped(text[at:]); length > 0 {
			literal = append(literal, kept...)
			at += length
			continue
		}
		if strings.HasPrefix(text[at:], VariableMark) {
			flush()
			end := variableEnd(text[at:])
			if end < 0 {
				return t, &Fault{Offset: at, Length: len(text) - at, Code: "template.unclosed",
					Message: fmt.Sprintf("the variable that begins here has no closing }: %q", text[at:])}
			}
			if err := sh.addVariable(&t, text, at, end+1, in); err != nil {
				return t, err
			}
			at += end + 1
			continue
		}
		if isMisplacedBrace(text, at, len(literal) == 0 && len(t.parts) > 0) {
			return t, &Fault{Offset: at, Length: 1, Code: "template.brace", Message: "a brace outside ${...}",
				Hint: fmt.Sprintf(`write a variable as ${name}; a brace that is part of the key has a backslash before it: \%c`, text[at])}
		}
		literal = append(literal, text[at])
		at++
	}
	flush()
	return t, nil
}

// VariableMark begins a variable in a template.
const VariableMark = "${"

// backquote encloses a name that has more than letters, digits and _.
const backquote = '`'

// variableEnd is where the } of the variable stands with which a text begins; -1 if there is none. Backquotes may hold a }.
func variableEnd(text string) int {
	quoted := false
	for i := range len(text) {
		switch {
		case text[i] == backquote:
			quoted = !quoted
		case text[i] == '}' && !quoted:
			return i
		}
	}
	return -1
}

// cutName cuts a variable's name, with or without backquotes, from the text behind its mark.
func cutName(text string) (name, rest string, ok bool) {
	if text == "" || text[0] != backquote {
		name = namePrefix.FindString(text)
		return name, text[len(name):], name != ""
	}
	name, rest, ok = strings.Cut(text[1:], string(backquote))
	return name, rest, ok && name != ""
}

// namePrefix is a plain name at the beginning of a text.
var namePrefix = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*`)

// escapable are the characters that a backslash keeps as they are. Before any
// other character a backslash is a backslash.
const escapable = `\<>{}%$:`

// escaped reads the escape that text begins with. It returns the characters that
// the escape keeps and its own length, which is 0 if text begins with none.
func escaped(text string) (kept string, length int) {
	switch {
	case len(text) < 2 || text[0] != '\\' || strings.IndexByte(escapable, text[1]) < 0:
		return "", 0
	case strings.HasPrefix(text[1:], VariableMark):
		return VariableMark, 1 + len(VariableMark)
	}
	return text[1:2], 2
}

// isMisplacedBrace reports a brace that was probably meant for a variable: one before a
// name, or one right behind a variable. Any other brace is a constant.
func isMisplacedBrace(text string, at int, behindVariable bool) bool {
	switch text[at] {
	case '{':
		return at+1 < len(text) && IsName(text[at+1:at+2])
	case '}':
		return behindVariable
	}
	return false
}

// addVariable adds the variable that stands at text[at:at+length], its ${ and } included, to a template.
func (sh *Shape) addVariable(t *Template, text string, at, length int, in Case) *Fault {
	inner := text[at+2 : at+length-1]
	fail := func(code, hint, message string, args ...any) *Fault {
		return &Fault{Offset: at, Length: length, Code: code, Message: fmt.Sprintf(message, args...), Hint: hint}
	}
	inner, rest := strings.CutSuffix(inner, "...")
	name, behind, ok := cutName(inner)
	formatText, formatted := strings.CutPrefix(behind, ":")
	if !ok || behind != "" && !formatted {
		return fail("template.variable", "write ${userId}; a name of more than letters, digits and _ stands in backquotes: ${`user-id`}",
			"%q is not a variable's name", inner)
	}
	format := Format{Case: in}
	if formatted {
		if format, ok = parseFormat(formatText); !ok || format.Width > 0 && rest {
			return fail("template.format", fmt.Sprintf("write ${%[1]s:010} for a number of 10 digits (38 at most), ${%[1]s:lower} or ${%[1]s:upper}",
				NameText(name)), "%q does not say how a key holds %s", behind, name)
		}
	}
	if rest && at+length < len(text) {
		return fail("template.rest", "move it to the end, or drop the dots",
			"${%s...} takes the rest of the key, so nothing can follow it", name)
	}
	if n := len(t.parts); n > 0 && t.parts[n-1].slot != literalPart {
		return fail("template.adjacent", "put a # between them",
			"${%s} follows another variable at once: where one ends cannot be told", name)
	}
	slot := slices.Index(sh.Variables, name)
	if slot < 0 {
		if len(sh.Variables) == VariablesMax {
			return fail("template.variables", "", "a key has at most %d variables", VariablesMax)
		}
		slot = len(sh.Variables)
		sh.Variables, sh.Formats = append(sh.Variables, name), append(sh.Formats, format)
	}
	if sh.Formats[slot] != format {
		return fail("template.format", "write it alike in both places", "the key holds %s in two ways: %s and %s", name,
			sh.variableText(slot), "${"+NameText(name)+format.String()+"}")
	}
	t.parts = append(t.parts, part{slot: slot, rest: rest, format: format})
	return nil
}

// variableText is a variable as a template has it.
func (sh *Shape) variableText(slot int) string {
	return "${" + NameText(sh.Variables[slot]) + sh.Formats[slot].String() + "}"
}

// Meanings are one text for all templates of one meaning, however they are escaped: only the braces of constants have a
// backslash in them, so that no constant reads as a variable.
func (sh *Shape) Meanings() (partition, sort string) {
	return sh.meaning(&sh.Partition), sh.meaning(&sh.Sort)
}

// Outlines are the meanings without the names of the variables: two shapes that have the same make the same keys.
func (sh *Shape) Outlines() (partition, sort string) {
	nameless := *sh
	nameless.Variables = make([]string, len(sh.Variables))
	for slot := range nameless.Variables {
		nameless.Variables[slot] = "v" + strconv.Itoa(slot)
	}
	return nameless.Meanings()
}

var braces = strings.NewReplacer("{", `\{`, "}", `\}`)

func (sh *Shape) meaning(t *Template) string {
	var b strings.Builder
	for _, p := range t.parts {
		switch {
		case p.slot == literalPart:
			b.WriteString(braces.Replace(p.literal))
		case p.rest:
			b.WriteString(strings.TrimSuffix(sh.variableText(p.slot), "}") + "...}")
		default:
			b.WriteString(sh.variableText(p.slot))
		}
	}
	return b.String()
}

// NameText is a name as a rule file has it.
func NameText(name string) string {
	if name == "" || IsName(name) {
		return name
	}
	return string(backquote) + name + string(backquote)
}

// IsName reports whether a text can name a variable or an entity.
func IsName(s string) bool { return namePattern.MatchString(s) }

var namePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Match parses text. It binds free variables (those whose value is "") and
// requires bound ones to agree. It allocates nothing: values are parts of text. A padded number has no zeros before it.
func (t *Template) Match(text string, vars *[VariablesMax]string) bool {
	for i := range t.parts {
		p := &t.parts[i]
		if p.slot == literalPart {
			if !strings.HasPrefix(text, p.literal) {
				return false
			}
			text = text[len(p.literal):]
			continue
		}
		end := t.valueEnd(i, text)
		if end < 1 {
			return false
		}
		value, ok := p.format.read(text[:end])
		if !ok || !p.rest && strings.IndexByte(value, '#') >= 0 {
			return false
		}
		if bound := vars[p.slot]; bound != "" && bound != value {
			return false
		}
		vars[p.slot] = value
		text = text[end:]
	}
	return text == ""
}

// valueEnd returns where, in text, the value of the variable at part i ends; text begins with that value. A padded number ends
// after its width. Any other value ends at the first place where all parts before the next variable of any length fit. If no
// such variable follows, the remaining parts take the end of text. Less than 1 means that there is no value.
func (t *Template) valueEnd(i int, text string) int {
	if width := t.parts[i].format.Width; width > 0 {
		return min(width, len(text))
	}
	if text == "" {
		return -1
	}
	next, length := i+1, 0
	for next < len(t.parts) && !t.parts[next].isOfAnyLength() {
		length += len(t.parts[next].literal) + t.parts[next].format.Width
		next++
	}
	switch {
	case next == len(t.parts):
		return len(text) - length
	case next == i+2:
		return 1 + strings.Index(text[1:], t.parts[i+1].literal)
	}
	for end := 1; end < len(text); end++ {
		if fits(t.parts[i+1:next], text[end:]) {
			return end
		}
	}
	return -1
}

func (p *part) isOfAnyLength() bool { return p.slot != literalPart && p.format.Width == 0 }

// fits reports whether text begins with what the parts, each of a fixed length, can be.
func fits(parts []part, text string) bool {
	for i := range parts {
		p := &parts[i]
		length := len(p.literal) + p.format.Width
		if length > len(text) {
			return false
		}
		is := text[:length] == p.literal
		if p.slot != literalPart {
			is = p.format.isPadded(text[:length])
		}
		if !is {
			return false
		}
		text = text[length:]
	}
	return true
}

// Render writes the values, which are in the variables' formats, into the template. ok is false if one of them is missing, or
// is a number of more digits than its width; text is then the longest prefix that is determined.
func (t *Template) Render(vars *[VariablesMax]string) (text string, ok bool) {
	if len(t.parts) == 1 && t.parts[0].slot == literalPart {
		return t.parts[0].literal, true
	}
	var b strings.Builder
	for _, p := range t.parts {
		if p.slot == literalPart {
			b.WriteString(p.literal)
			continue
		}
		value, ok := p.format.write(vars[p.slot])
		if vars[p.slot] == "" || !ok {
			return b.String(), false
		}
		b.WriteString(value)
	}
	return b.String(), true
}

// Single returns the slot of the one variable that is the whole template, which is what a
// number key needs. It reports false of any other template.
func (t *Template) Single() (slot int, ok bool) {
	if len(t.parts) != 1 || t.parts[0].slot == literalPart || t.parts[0].format.Width > 0 {
		return 0, false
	}
	return t.parts[0].slot, true
}

// Slots returns the slots of the variables, in their order.
func (t *Template) Slots() []int {
	var slots []int
	for _, p := range t.parts {
		if p.slot != literalPart {
			slots = append(slots, p.slot)
		}
	}
	return slots
}

// Rests reports whether each place of the variable takes the rest of the text.
func (t *Template) Rests(slot int) bool {
	return !slices.ContainsFunc(t.parts, func(p part) bool { return p.slot == slot && !p.rest })
}

// KeyText says what is fixed about the text of one key attribute of an entity's items, whatever values the variables have.
type KeyText struct {
	Exact  bool   // the text is always Prefix
	Prefix string // what every such text begins with; "" if it may begin with anything
	Suffix string // what every such text ends with; "" if it may end with anything
}

// Fixed returns what is fixed about each text of the template.
func (t *Template) Fixed() KeyText {
	first, last := t.parts[0], t.parts[len(t.parts)-1]
	return KeyText{Exact: len(t.parts) == 1 && first.slot == literalPart, Prefix: first.literal, Suffix: last.literal}
}
