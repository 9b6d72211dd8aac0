package expression

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/sim/dynamosim/values"
)

// inOperandsMax bounds the list of IN (developer guide, "Condition and filter expressions").
const inOperandsMax = 100

// ParseCondition parses a condition. kind is the request's field, such as
// ConditionExpression or FilterExpression, for the errors.
func ParseCondition(kind, text string, attrs *Attributes) (Condition, error) {
	p, err := newParser(kind, text, attrs)
	if err != nil {
		return Condition{}, err
	}
	root := p.disjunction()
	return Condition{root}, p.expectEnd()
}

func (p *parser) disjunction() node { return p.junction(true, "OR", p.conjunction) }
func (p *parser) conjunction() node { return p.junction(false, "AND", p.inversion) }

func (p *parser) junction(isAny bool, word string, branch func() node) node {
	branches := []node{branch()}
	for p.err == nil && p.acceptKeyword(word) {
		branches = append(branches, branch())
	}
	if len(branches) == 1 {
		return branches[0]
	}
	return junction{isAny, branches}
}

func (p *parser) inversion() node {
	if p.acceptKeyword("NOT") {
		if p.depth++; p.depth > depthMax {
			p.fail("The expression is nested too deeply;")
			return nil
		}
		n := p.inversion()
		p.depth--
		return negation{n}
	}
	return p.primary()
}

func (p *parser) primary() node {
	if !p.acceptMark("(") {
		return p.predicate()
	}
	if p.depth++; p.depth > depthMax {
		p.fail("The expression is nested too deeply;")
		return nil
	}
	doubled := p.peek().mark("(")
	n := p.disjunction()
	p.expectMark(")")
	p.depth--
	// ((x)) is refused, ((x) AND y) is not: the inner pair has to end just before the outer one.
	if doubled && p.err == nil && p.closesAt(p.at-1) {
		p.fail("The expression has redundant parentheses;")
	}
	return n
}

// closesAt reports whether the group ending at this ")" holds nothing but another group.
func (p *parser) closesAt(last int) bool {
	if !p.tokens[last-1].mark(")") {
		return false
	}
	open := func(end int) int {
		level := 0
		for i := end; ; i-- {
			if p.tokens[i].mark(")") {
				level++
			} else if p.tokens[i].mark("(") {
				if level--; level == 0 {
					return i
				}
			}
		}
	}
	return open(last)+1 == open(last-1)
}

// functions gives the number of arguments of each.
var functions = map[string]int{
	"attribute_exists": 1, "attribute_not_exists": 1, "attribute_type": 2, "begins_with": 2, "contains": 2,
}

func (p *parser) predicate() node {
	if t := p.peek(); t.kind == tokenWord && p.tokens[p.at+1].mark("(") {
		if _, ok := functions[t.text]; ok {
			return p.function()
		}
	}
	left := p.operand()
	t := p.peek()
	switch {
	case p.err != nil:
		return nil
	case p.acceptKeyword("BETWEEN"):
		return p.between(left)
	case p.acceptKeyword("IN"):
		return p.in(left)
	case t.kind == tokenMark && slices.Contains([]string{"=", "<>", "<", "<=", ">", ">="}, t.text):
		p.next()
		right := p.operand()
		p.checkDistinct(t.text, left, right)
		if t.text != "=" && t.text != "<>" {
			p.checkOrdered(t.text, left, right)
		}
		return comparison{t.text, left, right}
	}
	p.unexpected()
	return nil
}

func (p *parser) between(of operand) node {
	low := p.operand()
	if !p.acceptKeyword("AND") {
		p.unexpected()
		return nil
	}
	high := p.operand()
	p.checkDistinct("BETWEEN", of, low, high)
	p.checkOrdered("BETWEEN", of, low, high)
	lowest, isLow := low.(constant)
	highest, isHigh := high.(constant)
	if p.err == nil && isLow && isHigh {
		order, comparable := values.Compare(lowest.av, highest.av)
		if !comparable {
			p.fail("The BETWEEN operator requires same data type for lower and upper bounds;")
		} else if order > 0 {
			p.fail("The BETWEEN operator requires upper bound to be greater than or equal to lower bound;")
		}
	}
	return between{of, low, high}
}

func (p *parser) in(of operand) node {
	p.expectMark("(")
	members := []operand{p.operand()}
	for p.err == nil && p.acceptMark(",") {
		members = append(members, p.operand())
	}
	p.expectMark(")")
	if len(members) > inOperandsMax {
		p.fail("Operator IN has too many operands; number of operands: %d", len(members))
	}
	p.checkDistinct("IN", of, members...)
	return oneOf{of, members}
}

func (p *parser) function() node {
	name := p.next().text
	p.next()
	args := []operand{p.operand()}
	for p.err == nil && p.acceptMark(",") {
		args = append(args, p.operand())
	}
	p.expectMark(")")
	if p.err != nil {
		return nil
	}
	if len(args) != functions[name] {
		p.fail("Incorrect number of operands for operator or function; operator or function: %s, number of operands: %d", name, len(args))
		return nil
	}
	p.checkFunction(name, args)
	return function{name, args}
}

func (p *parser) checkFunction(name string, args []operand) {
	switch name {
	case "attribute_exists", "attribute_not_exists", "attribute_type":
		if _, isPath := args[0].(Path); !isPath {
			p.fail("Operator or function requires a document path; operator or function: %s", name)
		}
	}
	switch name {
	case "attribute_type":
		c, isConstant := args[1].(constant)
		if s, isText := c.av.(*types.AttributeValueMemberS); !isConstant || !isText {
			p.fail("Incorrect operand type for operator or function; operator or function: attribute_type, operand type: %s", values.TypeOf(c.av))
		} else if !slices.Contains([]string{"S", "N", "B", "BOOL", "NULL", "L", "M", "SS", "NS", "BS"}, s.Value) {
			p.fail("Invalid attribute type name found; type: %s, valid types: {B,NULL,SS,BOOL,L,BS,N,NS,S,M}", s.Value)
		}
	case "begins_with":
		for _, arg := range args {
			if c, ok := arg.(constant); ok && values.TypeOf(c.av) != "S" && values.TypeOf(c.av) != "B" {
				p.fail("Incorrect operand type for operator or function; operator or function: begins_with, operand type: %s", values.TypeOf(c.av))
			}
		}
		p.checkDistinct(name, args[0], args[1:]...)
	case "contains":
		p.checkDistinct(name, args[0], args[1:]...)
	}
}

// checkDistinct refuses a path that is compared with itself.
func (p *parser) checkDistinct(op string, first operand, rest ...operand) {
	path, ok := first.(Path)
	if !ok || p.err != nil {
		return
	}
	for _, o := range rest {
		if other, ok := o.(Path); ok && path.Equal(other) {
			p.fail("The first operand must be distinct from the remaining operands for this operator or function; operator: %s, first operand: %v",
				op, path)
		}
	}
}

// checkOrdered refuses constants that have no order.
func (p *parser) checkOrdered(op string, operands ...operand) {
	for _, o := range operands {
		if c, ok := o.(constant); ok && p.err == nil {
			if _, ordered := values.Compare(c.av, c.av); !ordered {
				p.fail("Incorrect operand type for operator or function; operator or function: %s, operand type: %s", op, values.TypeOf(c.av))
			}
		}
	}
}
