package infra

import (
	"regexp"
	"strings"
)

// A template is a tree of these, and of string, int and bool; yaml.go and
// hcl.go write it. The order is that of the code, so that the same rules give
// the same text.
type (
	// block is a mapping in order.
	block []entry
	entry struct {
		comment string
		key     string
		value   any
	}
	list []any
	// sub is text with placeholders, such as "${bucket}/*": the words of
	// placeholders, for which each language has its own reference.
	sub string
	// raw is text in the language of the template, such as a condition.
	raw string
	// nested is an HCL block; a plain block is an HCL object.
	nested block
	// encoded is a value that the template holds as JSON text.
	encoded struct{ value any }
)

var placeholder = regexp.MustCompile(`\$\{(\w+)\}`)

// resolve writes each placeholder as the language says it.
func (s sub) resolve(references map[string]string) string {
	return placeholder.ReplaceAllStringFunc(string(s), func(found string) string {
		word := found[2 : len(found)-1]
		reference, ok := references[word]
		if !ok {
			panic("infra: a template has no reference for " + word)
		}
		return "${" + reference + "}"
	})
}

const lineMax = 110 // characters of a comment's line

// writer writes lines with their indentation.
type writer struct {
	strings.Builder
	references map[string]string
}

func (w *writer) line(depth int, parts ...string) {
	text := strings.Join(parts, "")
	if text != "" {
		w.WriteString(strings.Repeat("  ", depth))
	}
	w.WriteString(text)
	w.WriteByte('\n')
}

func (w *writer) comment(depth int, text string) {
	if text == "" {
		return
	}
	for paragraph := range strings.Lines(text) {
		line := "#"
		for _, word := range strings.Fields(paragraph) {
			if len(line)+1+len(word) > lineMax-2*depth {
				w.line(depth, line)
				line = "#"
			}
			line += " " + word
		}
		w.line(depth, line)
	}
}
