package infra

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// plainScalar is text that YAML 1.1 and 1.2 read as this very text without
// quotes. Words that may be booleans or nothing are left out.
var (
	plainScalar = regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9_/.-]*(::[A-Za-z0-9]+)*$`)
	otherWord   = regexp.MustCompile(`(?i)^(true|false|yes|no|on|off|null|y|n)$`)
)

// yamlOf writes a CloudFormation template.
func yamlOf(top block, references map[string]string) string {
	w := &writer{references: references}
	for i, e := range top {
		if i > 0 && !isScalar(e.value) {
			w.line(0)
		}
		w.yamlEntry(0, e, "", e.key == "Parameters" || e.key == "Resources" || e.key == "Outputs")
	}
	return w.String()
}

func isScalar(value any) bool {
	switch value.(type) {
	case block, list:
		return false
	}
	return true
}

// yamlEntry writes one key and its value. lead stands before the key instead of
// some indentation: the dash of a list's element. apart puts an empty line between the value's own entries.
func (w *writer) yamlEntry(depth int, e entry, lead string, apart bool) {
	w.comment(depth, e.comment)
	key := lead + yamlText(e.key) + ":"
	switch value := e.value.(type) {
	case block:
		w.line(depth-len(lead)/2, key)
		for i, inner := range value {
			if apart && i > 0 {
				w.line(0)
			}
			w.yamlEntry(depth+1, inner, "", false)
		}
	case list:
		w.line(depth-len(lead)/2, key)
		for _, element := range value {
			w.yamlElement(depth+1, element)
		}
	case encoded:
		w.line(depth-len(lead)/2, key, " !Sub |")
		for line := range strings.Lines(jsonOf(value.value, w.references)) {
			w.line(depth+1, strings.TrimRight(line, "\n"))
		}
	default:
		w.line(depth-len(lead)/2, key, " ", w.yamlScalar(value))
	}
}

func (w *writer) yamlElement(depth int, element any) {
	inner, ok := element.(block)
	if !ok {
		w.line(depth, "- ", w.yamlScalar(element))
		return
	}
	for i, e := range inner {
		if i == 0 {
			w.comment(depth, e.comment)
			e.comment = ""
			w.yamlEntry(depth+1, e, "- ", false)
		} else {
			w.yamlEntry(depth+1, e, "", false)
		}
	}
}

func (w *writer) yamlScalar(value any) string {
	switch value := value.(type) {
	case string:
		return yamlText(value)
	case int:
		return strconv.Itoa(value)
	case bool:
		return strconv.FormatBool(value)
	case raw:
		return string(value)
	case sub:
		text := value.resolve(w.references)
		switch name, single := onlyReference(text); {
		case text == string(value) && !strings.Contains(text, "${"):
			return yamlText(text)
		case single && strings.Contains(name, "."):
			return "!GetAtt " + name
		case single:
			return "!Ref " + name
		}
		return "!Sub " + yamlText(text)
	}
	panic(fmt.Sprintf("infra: YAML has no form for %T", value))
}

// onlyReference returns the name of the reference that is all of the text.
func onlyReference(text string) (string, bool) {
	name, ok := strings.CutPrefix(text, "${")
	name, closed := strings.CutSuffix(name, "}")
	return name, ok && closed && !strings.ContainsAny(name, "${}")
}

func yamlText(text string) string {
	if plainScalar.MatchString(text) && !otherWord.MatchString(text) {
		return text
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 }) {
		return strconv.QuoteToASCII(text)
	}
	return "'" + strings.ReplaceAll(text, "'", "''") + "'"
}
