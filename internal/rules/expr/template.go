package expr

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/rules/expr/internal/operand"
	"github.com/dynamill/dynamill/internal/rules/expr/internal/scanner"
)

// Template is a text from which a value is worked out: an expression behind a =, or
// a text in which each ${ } holds an expression. It is immutable and safe for concurrent use.
type Template struct {
	source string
	parts  []templatePart
	reads  []string
}

// templatePart is a piece of a template: a literal text, or an expression.
type templatePart struct {
	literal string
	program *Program     // nil for a literal
	place   scanner.Span // of the program in the text
}

// The marks of a template.
const (
	holeBegins      = "${"
	expressionMark  = '='
	templateEscaped = `$\` // a backslash before one of these keeps it as it is
)

// CompileTemplate parses and checks the text of a template. The error is an *Error.
func CompileTemplate(src string) (*Template, error) {
	t := &Template{source: src}
	if len(src) > SourceBytesMax {
		return nil, problem(scanner.Span{Start: SourceBytesMax, End: len(src)}, CodeTooLong, "",
			"the text has %d bytes; at most %d are allowed", len(src), SourceBytesMax)
	}
	var err error
	if start := len(src) - len(strings.TrimLeft(src, " ")); start < len(src) && src[start] == expressionMark {
		err = t.addExpression(start+1, len(src))
	} else {
		err = t.parse()
	}
	if err != nil {
		return nil, err
	}
	if err := t.check(); err != nil {
		return nil, err
	}
	for _, part := range t.parts {
		if part.program != nil {
			t.reads = append(t.reads, part.program.reads...)
		}
	}
	slices.Sort(t.reads)
	t.reads = slices.Compact(t.reads)
	return t, nil
}

// parse takes the text apart.
func (t *Template) parse() error {
	var literal []byte
	flush := func() {
		if len(literal) > 0 {
			t.parts, literal = append(t.parts, templatePart{literal: string(literal)}), nil
		}
	}
	for at := 0; at < len(t.source); at++ {
		switch {
		case t.isEscape(at):
			at++
			literal = append(literal, t.source[at])
		case strings.HasPrefix(t.source[at:], holeBegins):
			flush()
			begin := at + len(holeBegins)
			end := scanner.ClosingBrace(t.source, begin)
			if end < 0 {
				return problem(scanner.Span{Start: at, End: len(t.source)}, CodeUnclosed,
					`write ${name}; a text that holds ${ has a backslash before it: \${`, "the ${ that begins here has no closing }")
			}
			if err := t.addExpression(begin, end); err != nil {
				return err
			}
			at = end
		default:
			literal = append(literal, t.source[at])
		}
	}
	flush()
	if len(t.parts) == 0 {
		return problem(scanner.Span{}, CodeEmpty, "drop the attribute, or write a text, as in \"POST#${status}\"",
			"the text is empty, and an empty text is no value")
	}
	return nil
}

// isEscape reports whether a backslash at a byte keeps the character behind it as it is. At the beginning
// it also keeps a =. Before any other character a backslash is a backslash.
func (t *Template) isEscape(at int) bool {
	if t.source[at] != '\\' || at+1 == len(t.source) {
		return false
	}
	next := t.source[at+1]
	return strings.IndexByte(templateEscaped, next) >= 0 || at == 0 && next == expressionMark
}

// addExpression compiles the part of the text between two bytes.
func (t *Template) addExpression(begin, end int) error {
	program, err := Compile(t.source[begin:end])
	if bad := (*Error)(nil); errors.As(err, &bad) {
		if strings.TrimSpace(t.source[begin:end]) == "" {
			return problem(scanner.Span{Start: begin, End: begin}, CodeSyntax, "write the name of an attribute, as in ${status}",
				"there is no expression")
		}
		moved := *bad
		moved.Offset += begin
		return &moved
	}
	t.parts = append(t.parts, templatePart{program: program, place: scanner.Span{Start: begin, End: end}})
	return nil
}

// IsWhole reports whether the template is one expression, whose value keeps its type. Any other makes a string.
func (t *Template) IsWhole() bool { return len(t.parts) == 1 && t.parts[0].program != nil }

// check refuses an expression whose type is known and is none that can be written.
func (t *Template) check() error {
	for _, part := range t.parts {
		if part.program == nil {
			continue
		}
		switch got := part.program.Type(); {
		case got == Null:
			return problem(part.place, CodeType, "to have no attribute, drop it", "this is null, which is no value")
		case got == List && !t.IsWhole():
			return problem(part.place, CodeType, "", "a text takes strings, numbers and conditions; this is %s", got)
		}
	}
	return nil
}

// String returns the text.
func (t *Template) String() string { return t.source }

// Reads returns the names of the attributes that the template reads, sorted.
func (t *Template) Reads() []string { return slices.Clone(t.reads) }

const tooLongFormat = "the text is longer than %d bytes"

// Value works out the value of an item. It returns false where a part is missing: absent, NULL or an
// empty string. Numbers are in plain digits. The error is an *EvalError.
func (t *Template) Value(get Lookup) (change.Value, bool, error) {
	var text []byte
	for _, part := range t.parts {
		if part.program == nil {
			text = append(text, part.literal...)
			continue
		}
		m := machine{source: part.program.source, get: get}
		v := m.eval(part.program.root)
		if len(text) > StringBytesMax {
			m.fail(CodeValueSize, tooLongFormat, StringBytesMax)
		}
		if m.err != nil || v.Missing() || v.Kind() == change.KindString && v.Text() == "" {
			return change.Value{}, false, m.err
		}
		if t.IsWhole() {
			return v.Written(), true, nil
		}
		switch v = operand.Of(v.Written()); v.Kind() {
		case change.KindString, change.KindNumber:
			text = append(text, v.Text()...)
		case change.KindBool:
			text = strconv.AppendBool(text, v.Bool())
		default:
			m.unfit(part.program.root.place(), v, "a text", "a string, a number or a condition")
			return change.Value{}, false, m.err
		}
	}
	if len(text) > StringBytesMax {
		return change.Value{}, false, &EvalError{CodeValueSize, fmt.Sprintf(tooLongFormat, StringBytesMax)}
	}
	return change.String(string(text)), true, nil
}
