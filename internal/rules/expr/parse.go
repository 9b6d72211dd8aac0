package expr

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
)

// parser is a recursive descent over the tokens. It checks the types of the nodes that
// it makes. depth counts what is open: parentheses, brackets, calls, unary operators. It
// is what bounds the stack.
type parser struct {
	source string
	tokens []token
	next   int
	depth  int
	reads  map[string]bool

	err     *Error // the first fault of the syntax: the parser finds nothing but the end after it
	mistake *Error // the first mistake in the types
}

// parse turns the source text into its tree, which has no meaning if there is an error or a mistake.
func (p *parser) parse() node {
	if n := len(p.source); n > SourceBytesMax {
		return p.fail(span{SourceBytesMax, n}, CodeTooLong, "", "the expression has %d bytes; at most %d are allowed", n, SourceBytesMax)
	}
	p.tokenize()
	if p.peek().kind == endToken {
		return p.fail(span{}, CodeSyntax, `write a condition, as role != "banned"`, "the expression is empty")
	}
	root := p.or()
	if p.peek().kind != endToken {
		p.unexpected("an operator or the end", "")
	}
	return root
}

// fail keeps the first fault of the syntax. It returns a node without a meaning.
func (p *parser) fail(at span, code, hint, format string, args ...any) node {
	if p.err == nil {
		p.err = problem(at, code, hint, format, args...)
	}
	return &literal{}
}

func problem(at span, code, hint, format string, args ...any) *Error {
	return &Error{at.start, at.end - at.start, code, fmt.Sprintf(format, args...), hint}
}

func (p *parser) peek() token {
	if p.err != nil {
		return token{kind: endToken}
	}
	return p.tokens[p.next]
}

// since returns the place from a byte to the end of the last token taken, so
// that a node's place has the parentheses around its first operand in it.
func (p *parser) since(start int) span { return span{start, p.tokens[p.next-1].end} }

// take consumes the next token if it is of one of the kinds.
func (p *parser) take(kinds ...string) (token, bool) {
	t := p.peek()
	if !slices.Contains(kinds, t.kind) {
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
func (p *parser) nested(open token, inner func() node) node {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > DepthMax {
		return p.fail(open.span, CodeTooDeep, "", "nested more than %d deep", DepthMax)
	}
	return inner()
}

func (p *parser) or() node { return p.chain(p.and, or) }

func (p *parser) and() node { return p.chain(p.relation, and) }

func (p *parser) sum() node { return p.chain(p.product, additions) }

func (p *parser) product() node { return p.chain(p.unary, multiplications) }

// chain parses operands joined by operators of one precedence.
func (p *parser) chain(operand func() node, operators []operator) node {
	start := p.peek().start
	first := operand()
	c := &chain{base: base{first.place(), first.static()}, first: first}
	for op, ok := p.takeOperator(operators); ok; op, ok = p.takeOperator(operators) {
		right := operand()
		c.typ, c.span = p.result(op, c, right), p.since(start)
		c.rest = append(c.rest, link{op, right, c.span})
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
	if _, negated := left.(*unary); negated && begin.kind == "!" && op.text == "in" {
		return p.fail(p.since(begin.start), CodeSyntax, "write !(x in list)", "! binds tighter than in")
	}
	right := p.sum()
	place := p.since(begin.start)
	if again, ok := p.takeOperator(relations); ok {
		return p.fail(p.tokens[p.next-1].span, CodeSyntax, "write a < b && b < c, or parentheses",
			"%s after %s: comparisons do not chain", again.text, op.text)
	}
	return &relation{base{place, p.result(op, left, right)}, op, left, right}
}

func (p *parser) unary() node {
	op, ok := p.take("!", "-")
	if !ok {
		return p.path()
	}
	operand := p.nested(op, p.unary)
	place := p.since(op.start)
	if op.kind == "!" {
		p.want(operand, "!", "a condition", Bool)
		return &unary{base{place, Bool}, op.kind, operand}
	}
	if number, ok := operand.(*literal); ok && number.typ == Number {
		return &literal{base{place, Number}, numberValue(number.value.number.Neg())}
	}
	p.want(operand, "-", "a number", Number)
	return &unary{base{place, Number}, op.kind, operand}
}

func (p *parser) primary() node {
	t, ok := p.take(numberToken, stringToken, nameToken, quotedToken, "[", "(")
	if !ok {
		return p.unexpected("a value", "")
	}
	switch t.kind {
	case numberToken:
		return p.number(t)
	case stringToken:
		return &literal{base{t.span, String}, wrap(change.String(t.text))}
	case nameToken:
		return p.name(t)
	case quotedToken:
		return p.attribute(t.span, t.text)
	case "[":
		return p.nested(t, func() node { return p.list(t) })
	}
	return p.nested(t, func() node {
		inner := p.or()
		p.expect(")", t)
		return inner
	})
}

func (p *parser) number(t token) node {
	n, err := decimal.Parse(t.text)
	switch {
	case errors.Is(err, decimal.ErrInexact):
		return p.fail(t.span, CodeNumber, "a number has at most 38 digits and lies between 1E-130 and 1E+126",
			"%s does not fit into a DynamoDB number", clip(t.text))
	case err != nil:
		return p.fail(t.span, CodeNumber, "", "%s is not a number", clip(t.text))
	}
	return &literal{base{t.span, Number}, numberValue(n)}
}

// name parses what begins with a name: a constant, a call, item["..."], or an attribute.
func (p *parser) name(t token) node {
	switch t.text {
	case "true", "false":
		return &literal{base{t.span, Bool}, truthValue(t.text == "true")}
	case "null":
		return &literal{base{t.span, Null}, wrap(change.Null())}
	case "item":
		return p.item(t)
	}
	if open, ok := p.take("("); ok {
		return p.nested(open, func() node { return p.call(t, open, nil, t.start) })
	}
	return p.attribute(t.span, t.text)
}

func (p *parser) attribute(at span, name string) node {
	p.reads[name] = true
	return &attribute{base{at, Any}, name}
}

// item parses item["user-name"], from behind the word item.
func (p *parser) item(t token) node {
	const message = "item is followed by an attribute's name in brackets"
	open, ok := p.take("[")
	if !ok {
		if _, dotted := p.take("."); dotted && p.peek().kind == nameToken {
			name := p.peek()
			hint := fmt.Sprintf("write %s, or item[%q].%s for a field of the attribute named item", name.text, "item", name.text)
			return p.fail(span{t.start, name.end}, CodeSyntax, hint, message)
		}
		return p.fail(t.span, CodeSyntax, `the attribute named item is written item["item"]`, message)
	}
	name, ok := p.take(stringToken)
	if !ok || name.text == "" {
		return p.fail(name.span, CodeSyntax, `write item["user-name"]`, "item[ ] needs an attribute's name in quotes")
	}
	p.expect("]", open)
	return p.attribute(p.since(t.start), name.text)
}

// list parses [a, b, c], from behind the bracket; a comma may follow the last element.
func (p *parser) list(open token) node {
	var elements []node
	for more := true; more && p.peek().kind != "]"; _, more = p.take(",") {
		elements = append(elements, p.or())
	}
	p.expect("]", open)
	return p.listOf(base{p.since(open.start), List}, elements)
}

// listOf is a literal if all elements are constants.
func (p *parser) listOf(b base, elements []node) node {
	constants := make([]change.Value, len(elements))
	for i, element := range elements {
		constant, ok := element.(*literal)
		if !ok {
			return &list{b, elements}
		}
		constants[i] = constant.value.plain()
	}
	return &literal{b, wrap(change.List(constants))}
}

// expect consumes a closing token, or says what it was to close.
func (p *parser) expect(kind string, open token) {
	if _, ok := p.take(kind); !ok {
		p.unexpected(kind, fmt.Sprintf("to close the %s at byte %d", open.kind, open.start))
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
	found := t.kind
	if t.kind != endToken {
		found = fmt.Sprintf("%q", clip(p.source[t.start:t.end]))
	}
	if t.kind == nameToken {
		hint = cmp.Or(hint, words[t.text])
	}
	if p.next > 0 && p.tokens[p.next-1].kind == nameToken {
		hint = cmp.Or(hint, words[p.tokens[p.next-1].text])
	}
	return p.fail(t.span, CodeSyntax, hint, "expected %s, found %s", wanted, found)
}
