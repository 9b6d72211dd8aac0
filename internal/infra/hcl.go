package infra

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// hclOf writes a Terraform configuration, formatted as `terraform fmt` does.
func hclOf(top block, references map[string]string) string {
	w := &writer{references: references}
	for i, e := range top {
		if i > 0 {
			w.line(0)
		}
		w.hclBlock(0, e)
	}
	return w.String()
}

func (w *writer) hclBlock(depth int, e entry) {
	w.comment(depth, e.comment)
	inner := block(e.value.(nested))
	if len(inner) == 0 {
		w.line(depth, e.key, " {}")
		return
	}
	w.line(depth, e.key, " {")
	w.hclEntries(depth+1, inner)
	w.line(depth, "}")
}

// hclEntries writes the entries of a block or an object. Signs of equality of
// neighbours that take one line each are put below each other, as `terraform
// fmt` does it.
func (w *writer) hclEntries(depth int, entries block) {
	for i := 0; i < len(entries); i++ {
		e := entries[i]
		if _, ok := e.value.(nested); ok {
			if i > 0 {
				w.line(0)
			}
			w.hclBlock(depth, e)
			continue
		}
		if i > 0 {
			if _, ok := entries[i-1].value.(nested); ok {
				w.line(0)
			}
		}
		w.comment(depth, e.comment)
		key := hclKey(e.key)
		w.line(depth, key, strings.Repeat(" ", w.widest(entries, i)-len(key)), " = ", w.hclValue(depth, e.value))
	}
}

// widest is the widest key among the neighbours of entry i, itself included. A
// value of several lines has no neighbours.
func (w *writer) widest(entries block, i int) int {
	width := len(hclKey(entries[i].key))
	if !w.oneLine(entries[i].value) {
		return width
	}
	for j := i; j < len(entries) && w.oneLine(entries[j].value); j++ {
		width = max(width, len(hclKey(entries[j].key)))
	}
	for j := i; j >= 0 && w.oneLine(entries[j].value); j-- {
		width = max(width, len(hclKey(entries[j].key)))
	}
	return width
}

// listMax is how many characters a list on one line may have.
const listMax = 100

// oneLine reports whether a value is written on one line.
func (w *writer) oneLine(value any) bool {
	switch value := value.(type) {
	case nested, block, encoded:
		return false
	case list:
		return flat(value) && len(w.flatList(value)) <= listMax
	}
	return true
}

func (w *writer) flatList(values list) string {
	var parts []string
	for _, element := range values {
		parts = append(parts, w.hclValue(0, element))
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

var hclName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

func hclKey(key string) string {
	if hclName.MatchString(key) {
		return key
	}
	return hclText(key)
}

func (w *writer) hclValue(depth int, value any) string {
	switch value := value.(type) {
	case string:
		return hclText(value)
	case int:
		return strconv.Itoa(value)
	case bool:
		return strconv.FormatBool(value)
	case nil:
		return "null"
	case raw:
		return string(value)
	case sub:
		if name, single := onlyReference(value.resolve(w.references)); single {
			return name
		}
		return quoted(value.resolve(w.references))
	case encoded:
		return "jsonencode(" + w.hclValue(depth, value.value) + ")"
	case block:
		inner := &writer{references: w.references}
		inner.hclEntries(depth+1, value)
		return "{\n" + inner.String() + strings.Repeat("  ", depth) + "}"
	case list:
		if w.oneLine(value) {
			return w.flatList(value)
		}
		var b writer
		for _, element := range value {
			if object, ok := element.(block); ok && len(object) > 0 {
				b.comment(depth+1, object[0].comment)
				object = append(block{{key: object[0].key, value: object[0].value}}, object[1:]...)
				element = object
			}
			b.line(depth+1, w.hclValue(depth+1, element), ",")
		}
		return "[\n" + b.String() + strings.Repeat("  ", depth) + "]"
	}
	panic(fmt.Sprintf("infra: HCL has no form for %T", value))
}

// hclText quotes a text in which nothing is to be interpolated.
func hclText(text string) string {
	return quoted(strings.NewReplacer("${", "$${", "%{", "%%{").Replace(text))
}

// quoted is text in quotes as both HCL and JSON read it.
func quoted(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ':
			fmt.Fprintf(&b, "\\u%04x", r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// jsonOf writes a tree as indented JSON.
func jsonOf(value any, references map[string]string) string {
	var b strings.Builder
	writeJSON(&b, 0, value, references)
	b.WriteByte('\n')
	return b.String()
}

func writeJSON(b *strings.Builder, depth int, value any, references map[string]string) {
	indent := "\n" + strings.Repeat("  ", depth+1)
	switch value := value.(type) {
	case block:
		b.WriteString("{")
		for i, e := range value {
			if i > 0 {
				b.WriteString(",")
			}
			b.WriteString(indent + quoted(e.key) + ": ")
			writeJSON(b, depth+1, e.value, references)
		}
		b.WriteString("\n" + strings.Repeat("  ", depth) + "}")
	case list:
		if flat(value) {
			indent = " "
		}
		b.WriteString("[")
		for i, element := range value {
			if i > 0 {
				b.WriteString("," + indent)
			} else if indent != " " {
				b.WriteString(indent)
			}
			writeJSON(b, depth+1, element, references)
		}
		if indent != " " {
			b.WriteString("\n" + strings.Repeat("  ", depth))
		}
		b.WriteString("]")
	case sub:
		b.WriteString(quoted(value.resolve(references)))
	case string:
		b.WriteString(quoted(value))
	case nil:
		b.WriteString("null")
	default:
		fmt.Fprint(b, value)
	}
}

// flat reports whether a list holds plain values only.
func flat(values list) bool {
	for _, value := range values {
		if !isScalar(value) {
			return false
		}
	}
	return true
}
