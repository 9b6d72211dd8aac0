package expr

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/internal/rules/expr/internal/operand"
	"github.com/dynamill/dynamill/internal/rules/expr/internal/scanner"
)

// parser is a recursive descent over the tokens. It checks the types of the nodes that
// it makes. depth counts what is open: parentheses, brackets, calls, unary operators. It
// is what bounds the stack.
type parser struct {
	source string
	tokens []scanner.Token
	next   int
	depth  int
	reads  map[string]bool

	err     *Error // the first fault of the syntax: the parser finds nothing but the end after it
	mistake *Error // the first mistake in the types
}

// parse turns the source text into its tree, which has no meaning if there is an error or a mistake.
func (p *parser) parse() node {
	if n := len(p.source); n > SourceBytesMax {
		return p.fail(scanner.Span{Start: SourceBytesMax, End: n}, CodeTooLong, "", "the expression has %d bytes; at most %d are allowed",
			n, SourceBytesMax)
	}
	tokens, fault := scanner.Scan(p.source)
	if fault != nil {
		return p.fail(fault.Span, cmp.Or(codes[fault.Kind], CodeSyntax), fault.Hint, "%s", fault.Message)
	}
	p.tokens = tokens
	if p.peek().Kind == scanner.End {
		return p.fail(scanner.Span{}, CodeSyntax, `write a condition, as role != "banned"`, "the expression is empty")
	}
	root := p.or()
	if p.peek().Kind != scanner.End {
		p.unexpected("an operator or the end", "")
	}
	return root
}

// codes are those of faults in tokens, by the token's kind. That of any other is CodeSyntax.
var codes = map[string]string{scanner.Number: CodeNumber, scanner.String: CodeString}

// fail keeps the first fault of the syntax. It returns a node without a meaning.
func (p *parser) fail(at scanner.Span, code, hint, format string, args ...any) node {
	if p.err == nil {
		p.err = problem(at, code, hint, format, args...)
	}
	return &literal{}
}

func problem(at scanner.Span, code, hint, format string, args ...any) *Error {
	return &Error{at.Start, at.End - at.Start, code, fmt.Sprintf(format, args...), hint}
}

func (p *parser) peek() scanner.Token {
	if p.err != nil {
		return scanner.Token{Kind: scanner.End}
	}
	return p.tokens[p.next]
}

// since returns the place from a byte to the end of the last token taken, so
// that a node's place has the parentheses around its first operand in it.
func (p *parser) since(start int) scanner.Span {
	return scanner.Span{Start: start, End: p.tokens[p.next-1].End}
}

// take consumes the next token if it is of one of the kinds.
func (p *parser) take(kinds ...string) (scanner.Token, bool) {
	t := p.peek()
	if !slices.Contains(kinds, t.Kind) {
		return t, false
	}
	p.next++
	return t, true
}

// takeOperator consumes the next token if it is one of the operators.
func (p *parser) takeOperator(operators []operator) (*operator, bool) {
	for i := range operators {
		if _, ok := p.take(operators[i].text); ok {
			return &operators[i], true
		}
	}
	return nil, false
}

// nested parses what is one level deeper than the token that opens it.
func (p *parser) nested(open scanner.Token, inner func() node) node {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > DepthMax {
		return p.fail(open.Span, CodeTooDeep, "", "nested more than %d deep", DepthMax)
	}
	return inner()
}

func (p *parser) or() node { return p.chain(p.and, or) }

func (p *parser) and() node { return p.chain(p.relation, and) }

func (p *parser) sum() node { return p.chain(p.product, additions) }

func (p *parser) product() node { return p.chain(p.unary, multiplications) }

// chain parses operands joined by operators of one precedence.
func (p *parser) chain(operand func() node, operators []operator) node {
	start := p.peek().Start
	first := operand()
	c := &chain{base: base{first.place(), first.static()}, first: first}
	for op, ok := p.takeOperator(operators); ok; op, ok = p.takeOperator(operators) {
		right := operand()
		c.typ, c.Span = p.result(op, c, right), p.since(start)
		c.rest = append(c.rest, link{op, right, c.Span})
	}
	if c.rest == nil {
		return first
	}
	return c
}

func (p *parser) relation() node {
	begin := p.peek()
	left := p.sum()
	op, ok := p.takeOperator(relations)
	if !ok {
		return left
	}
	if _, negated := left.(*unary); negated && begin.Kind == "!" && op.text == "in" {
		return p.fail(p.since(begin.Start), CodeSyntax, "write !(x in list)", "! binds tighter than in")
	}
	right := p.sum()
	place := p.since(begin.Start)
	if again, ok := p.takeOperator(relations); ok {
		return p.fail(p.tokens[p.next-1].Span, CodeSyntax, "write a < b && b < c, or parentheses",
			"%s after %s: comparisons do not chain", again.text, op.text)
	}
	return &relation{base{place, p.result(op, left, right)}, op, left, right}
}

func (p *parser) unary() node {
	op, ok := p.take("!", "-")
	if !ok {
		return p.path()
	}
	of := p.nested(op, p.unary)
	place := p.since(op.Start)
	if op.Kind == "!" {
		p.want(of, "!", "a condition", Bool)
		return &unary{base{place, Bool}, op.Kind, of}
	}
	if constant, ok := of.(*literal); ok && constant.typ == Number {
		number, _ := constant.value.Decimal()
		return &literal{base{place, Number}, operand.Number(number.Neg())}
	}
	p.want(of, "-", "a number", Number)
	return &unary{base{place, Number}, op.Kind, of}
}

func (p *parser) primary() node {
	t, ok := p.take(scanner.Number, scanner.String, scanner.Name, scanner.QuotedName, "[", "(")
	if !ok {
		return p.unexpected("a value", "")
	}
	switch t.Kind {
	case scanner.Number:
		return p.number(t)
	case scanner.String:
		return &literal{base{t.Span, String}, operand.Of(change.String(t.Text))}
	case scanner.Name:
		return p.name(t)
	case scanner.QuotedName:
		return p.attribute(t.Span, t.Text)
	case "[":
		return p.nested(t, func() node { return p.list(t) })
	}
	return p.nested(t, func() node {
		inner := p.or()
		p.expect(")", t)
		return inner
	})
}

func (p *parser) number(t scanner.Token) node {
	n, err := decimal.Parse(t.Text)
	switch {
	case errors.Is(err, decimal.ErrInexact):
		return p.fail(t.Span, CodeNumber, "a number has at most 38 digits and lies between 1E-130 and 1E+126",
			"%s does not fit into a DynamoDB number", printable.Shortened(t.Text))
	case err != nil:
		return p.fail(t.Span, CodeNumber, "", "%s is not a number", printable.Shortened(t.Text))
	}
	return &literal{base{t.Span, Number}, operand.Number(n)}
}

// name parses what begins with a name: a constant, a call, item["..."], or an attribute.
func (p *parser) name(t scanner.Token) node {
	switch t.Text {
	case "true", "false":
		return &literal{base{t.Span, Bool}, operand.Bool(t.Text == "true")}
	case "null":
		return &literal{base{t.Span, Null}, operand.Of(change.Null())}
	case "item":
		return p.item(t)
	}
	if open, ok := p.take("("); ok {
		return p.nested(open, func() node { return p.call(t, open, nil, t.Start) })
	}
	return p.attribute(t.Span, t.Text)
}

func (p *parser) attribute(at scanner.Span, name string) node {
	p.reads[name] = true
	return &attribute{base{at, Any}, name}
}

// item parses item["user-name"], from behind the word item.
func (p *parser) item(t scanner.Token) node {
	const message = "item is followed by an attribute's name in brackets"
	open, ok := p.take("[")
	if !ok {
		if _, dotted := p.take("."); dotted && p.peek().Kind == scanner.Name {
			name := p.peek()
			hint := fmt.Sprintf("write %s, or item[%q].%s for a field of the attribute named item", name.Text, "item", name.Text)
			return p.fail(scanner.Span{Start: t.Start, End: name.End}, CodeSyntax, hint, message)
		}
		return p.fail(t.Span, CodeSyntax, `the attribute named item is written item["item"]`, message)
	}
	name, ok := p.take(scanner.String)
	if !ok || name.Text == "" {
		return p.fail(name.Span, CodeSyntax, `write item["user-name"]`, "item[ ] needs an attribute's name in quotes")
	}
	p.expect("]", open)
	return p.attribute(p.since(t.Start), name.Text)
}

// list parses [a, b, c], from behind the bracket; a comma may follow the last element.
func (p *parser) list(open scanner.Token) node {
	var elements []node
	for more := true; more && p.peek().Kind != "]"; _, more = p.take(",") {
		elements = append(elements, p.or())
	}
	p.expect("]", open)
	return p.listOf(base{p.since(open.Start), List}, elements)
}

// listOf is a literal if all elements are constants.
func (p *parser) listOf(b base, elements []node) node {
	constants := make([]change.Value, len(elements))
	for i, element := range elements {
		constant, ok := element.(*literal)
		if !ok {
			return &list{b, elements}
		}
		constants[i] = constant.value.Plain()
	}
	return &literal{b, operand.Of(change.List(constants))}
}

// expect consumes a closing token, or says what it was to close.
func (p *parser) expect(kind string, open scanner.Token) {
	if _, ok := p.take(kind); !ok {
		p.unexpected(kind, fmt.Sprintf("to close the %s at byte %d", open.Kind, open.Start))
	}
}

// words are other languages' operators that read as names here.
var words = map[string]string{
	"and": "write && for and", "AND": "write && for and", "or": "write || for or", "OR": "write || for or",
	"not": "write ! for not", "NOT": "write ! for not", "is": "write == to compare", "IN": "write in",
	"contains": "write x.contains(y)", "matches": "there are no regular expressions",
}

// unexpected says that the next token is not what can stand here. Without a hint, it
// looks for another language's operator here or before.
func (p *parser) unexpected(wanted, hint string) node {
	t := p.peek()
	found := t.Kind
	if t.Kind != scanner.End {
		found = fmt.Sprintf("%q", printable.Shortened(p.source[t.Start:t.End]))
	}
	if t.Kind == scanner.Name {
		hint = cmp.Or(hint, words[t.Text])
	}
	if p.next > 0 && p.tokens[p.next-1].Kind == scanner.Name {
		hint = cmp.Or(hint, words[p.tokens[p.next-1].Text])
	}
	return p.fail(t.Span, CodeSyntax, hint, "expected %s, found %s", wanted, found)
}
