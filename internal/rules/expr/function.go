package expr

import (
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/internal/rules/expr/internal/operand"
	"github.com/dynamill/dynamill/internal/rules/expr/internal/scanner"
	"github.com/dynamill/dynamill/internal/rules/internal/spelling"
)

// function is called as f(x), or as x.f(y) if it is a method.
type function struct {
	name, usage string
	arguments   int // in the parentheses
	gives       Type
	method      func(text, part string) bool // nil of f(x)
	ofText      func(text string) string     // nil unless f(x) makes a string of a string
}

var functions = []function{
	{name: "has", usage: "has(x)", arguments: 1, gives: Bool},
	{name: "size", usage: "size(x)", arguments: 1, gives: Number},
	{name: "lower", usage: "lower(x)", arguments: 1, gives: String, ofText: strings.ToLower},
	{name: "upper", usage: "upper(x)", arguments: 1, gives: String, ofText: strings.ToUpper},
	{name: "trim", usage: "trim(x)", arguments: 1, gives: String, ofText: strings.TrimSpace},
	{name: "pad", usage: "pad(n, width)", arguments: 2, gives: String},
	{name: "startsWith", usage: "x.startsWith(y)", arguments: 1, gives: Bool, method: strings.HasPrefix},
	{name: "endsWith", usage: "x.endsWith(y)", arguments: 1, gives: Bool, method: strings.HasSuffix},
	{name: "contains", usage: "x.contains(y)", arguments: 1, gives: Bool, method: strings.Contains},
}

// PadWidthMax is the greatest width of pad: no number has more digits.
const PadWidthMax = 38

const usagesHint = "the functions are has(x), size(x), lower(x), upper(x), trim(x), pad(n, width), x.startsWith(y), x.endsWith(y) " +
	"and x.contains(y)"

// others are functions of other languages that have a counterpart here.
var others = map[string]string{
	"exists": "has", "defined": "has", "attribute_exists": "has", "exist": "has",
	"length": "size", "len": "size", "count": "size",
	"begins_with": "startsWith", "beginsWith": "startsWith", "hasPrefix": "startsWith", "prefix": "startsWith",
	"hasSuffix": "endsWith", "suffix": "endsWith", "includes": "contains", "like": "contains",
	"toLowerCase": "lower", "toLower": "lower", "lowercase": "lower", "toUpperCase": "upper", "toUpper": "upper", "uppercase": "upper",
	"strip": "trim", "padStart": "pad", "lpad": "pad", "zfill": "pad", "zeropad": "pad", "format": "pad",
}

func named(name string) *function {
	for i := range functions {
		if functions[i].name == name {
			return &functions[i]
		}
	}
	return nil
}

// function returns the function of a name. It refuses a name that is no function, or is
// one that is called the other way, and says what was perhaps meant.
func (p *parser) function(name scanner.Token, method bool) *function {
	if f := named(name.Text); f != nil {
		if (f.method != nil) != method {
			p.fail(name.Span, CodeUnknownFunction, "write "+f.usage, "%s is not called like this", name.Text)
		}
		return f
	}
	hint := usagesHint
	if near := nearest(name.Text); near != nil {
		hint = "did you mean " + near.usage + "?"
	}
	p.fail(name.Span, CodeUnknownFunction, hint, "there is no function %s", printable.Shortened(name.Text))
	return &function{}
}

// nearest returns the function that a name was perhaps meant to be, or nil.
func nearest(name string) *function {
	if other, ok := others[name]; ok {
		return named(other)
	}
	var best *function
	bestDistance := 3 // two slips at most, and at most half the letters
	plain := strings.ToLower(strings.ReplaceAll(name, "_", ""))
	for i, f := range functions {
		if len(name) > 2*len(f.name) {
			continue
		}
		d := spelling.Distance(plain, strings.ToLower(f.name))
		if d < bestDistance && 2*d <= len(f.name) {
			best, bestDistance = &functions[i], d
		}
	}
	return best
}

// call parses the arguments of a function, or of a method if there is a
// subject, from behind the parenthesis; the whole call begins at start.
func (p *parser) call(name, open scanner.Token, subject node, start int) node {
	f := p.function(name, subject != nil)
	if subject != nil {
		p.subject(f, subject)
	}
	var arguments []node
	for more := p.peek().Kind != ")"; more; _, more = p.take(",") {
		arguments = append(arguments, p.or())
	}
	p.expect(")", open)
	place := p.since(start)
	if p.err != nil || len(arguments) != f.arguments {
		takes := "one argument"
		if f.arguments == 2 {
			takes = "two arguments"
		}
		return p.fail(place, CodeSyntax, "write "+f.usage, "%s takes %s, not %d", name.Text, takes, len(arguments))
	}
	argument := arguments[0]
	switch f.name {
	case "has":
		if !isPath(argument) {
			p.mistype(argument, "write has(a), has(a.b) or has(a[0])", "has needs an attribute or a part of one")
		}
	case "size":
		p.want(argument, "size", "a string, list, map or set", String, List)
	case "pad":
		p.want(argument, "pad", "a number", Number)
		p.width(arguments[1])
	default:
		p.want(argument, f.name, "a string", String)
	}
	return &call{base{place, f.gives}, f, subject, arguments}
}

// width checks the second argument of pad.
func (p *parser) width(n node) {
	p.want(n, "pad", "a number as its width", Number)
	if l, ok := n.(*literal); ok && l.typ == Number && !isWidth(l.value) {
		p.mistype(n, "", "a width is "+widthText)
	}
}

// subject checks what stands before a method.
func (p *parser) subject(f *function, subject node) {
	hint, got := "", subject.static()
	if got == List && f.name == "contains" {
		hint = "write x in list"
	}
	if got != Any && got != String {
		p.mistype(subject, hint, "%s needs a string before it, this is %s", f.name, got)
	}
}

// call works out what a function or a method gives.
func (m *machine) call(n *call) operand.Value {
	first := n.arguments[0]
	switch {
	case n.function.name == "has":
		return operand.Bool(!m.reach(first).Missing())
	case n.function.method != nil:
		return operand.Bool(m.method(n, m.eval(n.subject), m.eval(first)))
	}
	v := m.eval(first)
	switch {
	case n.function.name == "pad":
		return m.pad(n, v, m.eval(n.arguments[1]))
	case v.Missing():
		return operand.Value{}
	case n.function.ofText != nil:
		return m.ofText(n, v)
	}
	size, ok := v.Size()
	if !ok {
		return m.unfit(first.place(), v, "size", "a string, list, map or set")
	}
	return operand.Number(decimal.New(int64(size)))
}

// ofText makes a string of a string.
func (m *machine) ofText(n *call, v operand.Value) operand.Value {
	if v.Kind() != change.KindString {
		return m.unfit(n.arguments[0].place(), v, n.function.name, "a string")
	}
	text := n.function.ofText(v.Text())
	if len(text) > StringBytesMax { // some letters are longer in the other case
		return m.fail(CodeValueSize, "%s is longer than %d bytes", m.text(n.Span), StringBytesMax)
	}
	return operand.Of(change.String(text))
}

const widthText = "a whole number from 1 to 38"

func isWidth(v operand.Value) bool {
	width, ok := v.Position()
	return ok && width >= 1 && width <= PadWidthMax
}

// pad writes a number with zeros before it, so that texts of one width sort like their numbers.
func (m *machine) pad(n *call, v, width operand.Value) operand.Value {
	if v.Missing() || width.Missing() {
		return operand.Value{}
	}
	number := m.number(v, n.arguments[0].place(), "pad")
	if m.err == nil && !isWidth(width) {
		m.unfit(n.arguments[1].place(), width, "pad", "as its width "+widthText)
	}
	if m.err != nil {
		return operand.Value{}
	}
	if !number.IsInteger() || number.Cmp(decimal.New(0)) < 0 {
		return m.fail(CodeNumberWidth, "%s is the number %s; pad needs a whole number from 0 up", m.text(n.arguments[0].place()), number)
	}
	digits := number.String()
	most, _ := width.Position()
	if len(digits) > most {
		return m.fail(CodeNumberWidth, "%s is the number %s, which has more than %d digits",
			m.text(n.arguments[0].place()), printable.Shortened(digits), most)
	}
	return operand.Of(change.String(strings.Repeat("0", most-len(digits)) + digits))
}

func (m *machine) method(n *call, subject, argument operand.Value) bool {
	switch {
	case subject.Missing() || argument.Missing():
		return false
	case subject.Kind() != change.KindString:
		m.unfit(n.subject.place(), subject, n.function.name, "a string before it")
	case argument.Kind() != change.KindString:
		m.unfit(n.arguments[0].place(), argument, n.function.name, "a string")
	}
	return n.function.method(subject.Text(), argument.Text())
}
