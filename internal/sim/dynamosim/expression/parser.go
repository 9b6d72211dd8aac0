package expression

import (
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/sim/dynamosim/values"
)

// parser walks the tokens of one expression. It remembers the first error and
// then stands at the end, so that callers check once.
type parser struct {
	kind   string // as errors name it: ConditionExpression, ...
	attrs  *Attributes
	tokens []token
	at     int
	err    error
	depth  int
}

// depthMax bounds nesting, so that no text can exhaust the stack.
const depthMax = 100

func newParser(kind, text string, attrs *Attributes) (*parser, error) {
	if strings.TrimSpace(text) == "" {
		return nil, values.Invalid("Invalid %s: The expression can not be empty;", kind)
	}
	if len(text) > textBytesMax {
		return nil, values.Invalid("Invalid %s: Expression size has exceeded the maximum allowed size; expression size: %d", kind, len(text))
	}
	tokens, ok := lex(text)
	p := &parser{kind: kind, attrs: attrs, tokens: tokens}
	if !ok {
		return nil, p.invalid("Syntax error; token: %q", tokens[len(tokens)-1].text)
	}
	if n := p.operators(); n > operatorsMax {
		return nil, p.invalid("The expression contains too many operators; operator count: %d", n)
	}
	return p, nil
}

// operatorsMax bounds an expression (developer guide, "Quotas").
const operatorsMax = 300

// operators counts operators and functions. In an update, = is none.
func (p *parser) operators() int {
	n := 0
	for i, t := range p.tokens {
		switch {
		case t.keyword("BETWEEN"): // its AND is part of it
		case t.keyword("AND"), t.keyword("OR"), t.keyword("NOT"), t.keyword("IN"):
			n++
		case t.kind == tokenWord:
			if p.tokens[i+1].mark("(") {
				n++
			}
		case t.kind != tokenMark:
		case slices.Contains([]string{"<>", "<", "<=", ">", ">=", "+", "-"}, t.text), t.text == "=" && p.kind != "UpdateExpression":
			n++
		}
	}
	return n
}

func (p *parser) invalid(format string, args ...any) error {
	return values.Invalid("Invalid "+p.kind+": "+format, args...)
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = p.invalid(format, args...)
	}
	p.at = len(p.tokens) - 1
}

func (p *parser) peek() token { return p.tokens[p.at] }

func (p *parser) next() token {
	t := p.tokens[p.at]
	if p.at < len(p.tokens)-1 {
		p.at++
	}
	return t
}

func (p *parser) unexpected() { p.fail("Syntax error; token: %q", p.peek().text) }

func (p *parser) acceptMark(text string) bool {
	if p.peek().mark(text) {
		p.at++
		return true
	}
	return false
}

func (p *parser) acceptKeyword(word string) bool {
	if p.peek().keyword(word) {
		p.at++
		return true
	}
	return false
}

func (p *parser) expectMark(text string) {
	if !p.acceptMark(text) {
		p.unexpected()
	}
}

func (p *parser) expectEnd() error {
	if p.err == nil && p.peek().kind != tokenEnd {
		p.unexpected()
	}
	return p.err
}

// path reads a document path: a name, then .name and [index].
func (p *parser) path() Path {
	path := Path{{Name: p.pathName()}}
	for p.err == nil {
		switch {
		case p.acceptMark("."):
			path = append(path, Step{Name: p.pathName()})
		case p.acceptMark("["):
			t := p.next()
			index, err := strconv.Atoi(t.text)
			if t.kind != tokenIndex || err != nil {
				p.fail("Syntax error; token: %q", t.text)
			}
			p.expectMark("]")
			path = append(path, Step{Index: index})
		default:
			if len(path) > values.DepthMax {
				p.fail("The document path has too many nesting elements; nesting: %d", len(path))
			}
			return path
		}
	}
	return path
}

func (p *parser) pathName() string {
	t := p.peek()
	switch t.kind {
	case tokenWord:
		if reserved(t.text) {
			p.fail("Attribute name is a reserved keyword; reserved keyword: %s", t.text)
		}
		p.next()
		return t.text
	case tokenName:
		name, ok := p.attrs.name(t.text)
		if !ok || name == "" {
			p.fail("An expression attribute name used in the document path is not defined; attribute name: %s", t.text)
		}
		p.next()
		return name
	}
	p.unexpected()
	return "?"
}

// operand is a value placeholder, a path, or a function of them.
type operand interface {
	// eval returns the operand's value in an item; nil if it has none.
	eval(item values.Item) types.AttributeValue
}

type constant struct{ av types.AttributeValue }

func (c constant) eval(values.Item) types.AttributeValue { return c.av }

func (p Path) eval(item values.Item) types.AttributeValue { return p.Get(item) }

// sizeOf is the function size.
type sizeOf struct{ of operand }

func (s sizeOf) eval(item values.Item) types.AttributeValue {
	n, ok := values.Length(s.of.eval(item))
	if !ok {
		return nil
	}
	return &types.AttributeValueMemberN{Value: strconv.Itoa(n)}
}

// constant reads a value placeholder.
func (p *parser) constant() constant {
	t := p.next()
	av, ok := p.attrs.value(t.text)
	if !ok {
		p.fail("An expression attribute value used in expression is not defined; attribute value: %s", t.text)
	}
	return constant{av}
}

// operand reads one operand of a condition.
func (p *parser) operand() operand {
	t := p.peek()
	if t.kind == tokenValue {
		return p.constant()
	}
	if t.kind == tokenWord && p.tokens[p.at+1].mark("(") {
		if t.text != "size" {
			p.functionMisplaced(t.text)
			return constant{}
		}
		p.at += 2
		of := p.operand()
		p.expectMark(")")
		if c, ok := of.(constant); ok && p.err == nil && !slices.Contains(measurable, values.TypeOf(c.av)) {
			p.fail("Incorrect operand type for operator or function; operator or function: size, operand type: %s", values.TypeOf(c.av))
		}
		return sizeOf{of}
	}
	return p.path()
}

var measurable = []string{"S", "B", "SS", "NS", "BS", "L", "M"}

func (p *parser) functionMisplaced(name string) {
	if slices.Contains([]string{"attribute_exists", "attribute_not_exists", "attribute_type", "begins_with", "contains"}, name) {
		p.fail("The function is not allowed to be used this way in an expression; function: %s", name)
		return
	}
	p.fail("Invalid function name; function: %s", name)
}
