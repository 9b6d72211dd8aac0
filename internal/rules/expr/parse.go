package expr

import (
	"errors"
	"fmt"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
)

// parser is a recursive descent over the tokens. depth counts what is open:
// parentheses, brackets, calls, unary operators. It is what bounds the stack.
type parser struct {
	source string
	tokens []token
	next   int
	depth  int
}

// parse turns a source text into its tree. The error is an *Error.
func parse(source string) (node, error) {
	if len(source) > SourceBytesMax {
		return nil, &Error{SourceBytesMax, len(source) - SourceBytesMax, CodeTooLong,
			fmt.Sprintf("the expression has %d bytes; at most %d are allowed", len(source), SourceBytesMax), ""}
	}
	tokens, err := tokenize(source)
	if err != nil {
		return nil, err
	}
	p := &parser{source: source, tokens: tokens}
	if p.peek().kind == tokenEnd {
		return nil, &Error{0, 0, CodeSyntax, "the expression is empty", `write a condition, as role != "banned"`}
	}
	root, err := p.or()
	if err != nil {
		return nil, err
	}
	if p.peek().kind != tokenEnd {
		return nil, p.unexpected("an operator or the end")
	}
	return root, nil
}

func (p *parser) peek() token { return p.tokens[p.next] }

// since returns the place from a byte to the end of the last token taken, so
// that a node's place has the parentheses around its first operand in it.
func (p *parser) since(start int) span { return span{start, p.tokens[p.next-1].end} }

// take consumes the next token if it is of one of the kinds.
func (p *parser) take(kinds ...kind) (token, bool) {
	t := p.peek()
	for _, k := range kinds {
		if t.kind == k {
			if k != tokenEnd {
				p.next++
			}
			return t, true
		}
	}
	return t, false
}

// open enters one level of nesting; every open has its close.
func (p *parser) open(at token) error {
	p.depth++
	if p.depth > DepthMax {
		return &Error{at.start, at.end - at.start, CodeTooDeep, fmt.Sprintf("nested more than %d deep", DepthMax), ""}
	}
	return nil
}

func (p *parser) close() { p.depth-- }

func (p *parser) or() (node, error) { return p.chain(p.and, tokenOr) }

func (p *parser) and() (node, error) { return p.chain(p.relation, tokenAnd) }

func (p *parser) sum() (node, error) { return p.chain(p.product, tokenPlus, tokenMinus) }

func (p *parser) product() (node, error) { return p.chain(p.unary, tokenTimes, tokenDivide) }

// chain parses operands joined by operators of one precedence.
func (p *parser) chain(operand func() (node, error), operators ...kind) (node, error) {
	start := p.peek().start
	first, err := operand()
	if err != nil {
		return nil, err
	}
	var rest []link
	for {
		op, ok := p.take(operators...)
		if !ok {
			break
		}
		right, err := operand()
		if err != nil {
			return nil, err
		}
		rest = append(rest, link{op.kind, right, p.since(start)})
	}
	if rest == nil {
		return first, nil
	}
	return &chain{p.since(start), first, rest}, nil
}

var relations = []kind{tokenEqual, tokenNotEqual, tokenLess, tokenLessEqual, tokenGreater, tokenGreaterEqual, tokenIn}

func (p *parser) relation() (node, error) {
	begin := p.peek()
	left, err := p.sum()
	if err != nil {
		return nil, err
	}
	op, ok := p.take(relations...)
	if !ok {
		return left, nil
	}
	if begin.kind == tokenNot && op.kind == tokenIn {
		if _, negated := left.(*unary); negated {
			return nil, &Error{begin.start, op.end - begin.start, CodeSyntax, "! binds tighter than in", "write !(x in list)"}
		}
	}
	right, err := p.sum()
	if err != nil {
		return nil, err
	}
	if again, ok := p.take(relations...); ok {
		return nil, &Error{again.start, again.end - again.start, CodeSyntax,
			fmt.Sprintf("%s after %s: comparisons do not chain", again.kind, op.kind), "write a < b && b < c, or parentheses"}
	}
	return &relation{p.since(begin.start), op.kind, left, right}, nil
}

func (p *parser) unary() (node, error) {
	op, ok := p.take(tokenNot, tokenMinus)
	if !ok {
		return p.path()
	}
	if err := p.open(op); err != nil {
		return nil, err
	}
	defer p.close()
	operand, err := p.unary()
	if err != nil {
		return nil, err
	}
	place := p.since(op.start)
	if number, ok := operand.(*literal); ok && op.kind == tokenMinus && number.typ == Number {
		return &literal{place, numberValue(number.value.number.Neg()), Number}, nil
	}
	return &unary{place, op.kind, operand}, nil
}

func (p *parser) primary() (node, error) {
	t := p.peek()
	switch t.kind {
	case tokenNumber:
		p.next++
		return numberLiteral(t)
	case tokenString:
		p.next++
		return &literal{t.span, wrap(change.String(t.text)), String}, nil
	case tokenName:
		p.next++
		return p.name(t)
	case tokenOpenBracket:
		return p.list()
	case tokenOpen:
		if err := p.open(t); err != nil {
			return nil, err
		}
		defer p.close()
		p.next++
		inner, err := p.or()
		if err != nil {
			return nil, err
		}
		return inner, p.expect(tokenClose, t)
	}
	return nil, p.unexpected("a value")
}

func numberLiteral(t token) (node, error) {
	n, err := decimal.Parse(t.text)
	switch {
	case errors.Is(err, decimal.ErrInexact):
		return nil, &Error{t.start, t.end - t.start, CodeNumber,
			fmt.Sprintf("%s does not fit into a DynamoDB number", clip(t.text)), "a number has at most 38 digits and lies between 1E-130 and 1E+126"}
	case err != nil:
		return nil, &Error{t.start, t.end - t.start, CodeNumber, fmt.Sprintf("%s is not a number", clip(t.text)), ""}
	}
	return &literal{t.span, numberValue(n), Number}, nil
}

// name parses what begins with a name: a constant, a call, item["..."], or an attribute.
func (p *parser) name(t token) (node, error) {
	switch t.text {
	case "true", "false":
		return &literal{t.span, wrap(change.Bool(t.text == "true")), Bool}, nil
	case "null":
		return &literal{t.span, wrap(change.Null()), Null}, nil
	case "item":
		return p.item(t)
	}
	if open, ok := p.take(tokenOpen); ok {
		return p.call(t, open, nil, t.start)
	}
	return &attribute{t.span, t.text}, nil
}

// item parses item["user-name"], from behind the word item.
func (p *parser) item(t token) (node, error) {
	open, ok := p.take(tokenOpenBracket)
	if !ok {
		if _, dotted := p.take(tokenDot); dotted && p.peek().kind == tokenName {
			name := p.peek()
			return nil, &Error{t.start, name.end - t.start, CodeSyntax, "item is followed by an attribute's name in brackets",
				fmt.Sprintf("write %s, or item[%q].%s for a field of the attribute named item", name.text, "item", name.text)}
		}
		return nil, &Error{t.start, t.end - t.start, CodeSyntax, "item is followed by an attribute's name in brackets",
			`the attribute named item is written item["item"]`}
	}
	name, ok := p.take(tokenString)
	if !ok || name.text == "" {
		return nil, p.errorAt(name, "item[ ] needs an attribute's name in quotes", `write item["user-name"]`)
	}
	if err := p.expect(tokenCloseBracket, open); err != nil {
		return nil, err
	}
	return &attribute{p.since(t.start), name.text}, nil
}

// list parses [a, b, c]; a comma may follow the last element.
func (p *parser) list() (node, error) {
	open, _ := p.take(tokenOpenBracket)
	if err := p.open(open); err != nil {
		return nil, err
	}
	defer p.close()
	var elements []node
	for p.peek().kind != tokenCloseBracket {
		element, err := p.or()
		if err != nil {
			return nil, err
		}
		elements = append(elements, element)
		if _, ok := p.take(tokenComma); !ok {
			break
		}
	}
	if err := p.expect(tokenCloseBracket, open); err != nil {
		return nil, err
	}
	return &list{p.since(open.start), elements, nil}, nil
}
