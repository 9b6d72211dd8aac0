package expr

import (
	"fmt"
	"maps"
	"slices"

	"github.com/dynamill/dynamill/change"
)

// checker finds the type of every node and the attributes that are read. It
// keeps the first problem; after one, what it returns has no meaning.
type checker struct {
	reads map[string]bool
	err   *Error
}

func (c *checker) names() []string { return slices.Sorted(maps.Keys(c.reads)) }

func (c *checker) fail(at span, hint, format string, arguments ...any) {
	if c.err == nil {
		c.err = &Error{at.start, at.end - at.start, CodeType, fmt.Sprintf(format, arguments...), hint}
	}
}

// want checks that a type is one of those that an operator takes, or unknown.
func (c *checker) want(at span, got Type, operator, needs string, allowed ...Type) {
	if got != Any && !slices.Contains(allowed, got) {
		c.fail(at, nullHint(got), "%s needs %s, this is %s", operator, needs, got)
	}
}

func nullHint(got Type) string {
	if got == Null {
		return "null is only compared, with == and !="
	}
	return ""
}

func (c *checker) check(n node) Type {
	switch n := n.(type) {
	case *literal:
		return n.typ
	case *attribute:
		c.reads[n.name] = true
		return Any
	case *list:
		return c.list(n)
	case *chain:
		return c.chain(n)
	case *relation:
		return c.relation(n)
	case *unary:
		got := c.check(n.operand)
		if n.op == tokenNot {
			c.want(n.operand.place(), got, "!", "a condition", Bool)
			return Bool
		}
		c.want(n.operand.place(), got, "-", "a number", Number)
		return Number
	case *field:
		if got := c.check(n.of); got != Any {
			c.fail(n.of.place(), "", "only a map has fields, this is %s", got)
		}
		return Any
	case *index:
		return c.index(n)
	case *slice:
		return c.slice(n)
	case *call:
		return c.call(n)
	}
	panic(fmt.Sprintf("expression node %T is unknown to the checker", n))
}

func (c *checker) list(n *list) Type {
	constant := make([]change.Value, 0, len(n.elements))
	for _, element := range n.elements {
		c.check(element)
		switch e := element.(type) {
		case *literal:
			constant = append(constant, e.value.plain())
		case *list:
			if e.constant != nil {
				constant = append(constant, change.List(e.constant))
			}
		}
	}
	if len(constant) == len(n.elements) {
		n.constant = constant
	}
	return List
}

func (c *checker) chain(n *chain) Type {
	got, at := c.check(n.first), n.first.place()
	for _, l := range n.rest {
		right, rightAt := c.check(l.operand), l.operand.place()
		switch l.op {
		case tokenOr, tokenAnd:
			c.want(at, got, l.op.String(), "conditions", Bool)
			c.want(rightAt, right, l.op.String(), "conditions", Bool)
			got = Bool
		case tokenPlus:
			got = c.plus(at, got, rightAt, right)
		default:
			c.want(at, got, l.op.String(), "numbers", Number)
			c.want(rightAt, right, l.op.String(), "numbers", Number)
			got = Number
		}
		at = l.upTo
	}
	return got
}

func (c *checker) plus(leftAt span, left Type, rightAt span, right Type) Type {
	c.want(leftAt, left, "+", "two numbers or two strings", Number, String)
	c.want(rightAt, right, "+", "two numbers or two strings", Number, String)
	switch {
	case left == Any:
		return right
	case right != Any && left != right:
		c.fail(rightAt, "", "+ needs two numbers or two strings, this is %s after %s", right, left)
	}
	return left
}

func (c *checker) relation(n *relation) Type {
	left, right := c.check(n.left), c.check(n.right)
	op := n.op.String()
	switch n.op {
	case tokenEqual, tokenNotEqual:
	case tokenIn:
		c.want(n.left.place(), left, op, "a value on its left", Bool, Number, String, List)
		if right == String {
			c.fail(n.right.place(), "write text.contains(part)", "in needs a list, set or map on its right, this is %s", right)
		}
		c.want(n.right.place(), right, op, "a list, set or map on its right", List)
	default:
		c.want(n.left.place(), left, op, "two numbers or two strings", Number, String)
		c.want(n.right.place(), right, op, "two numbers or two strings", Number, String)
		if left != Any && right != Any && left != right {
			c.fail(n.right.place(), "", "%s needs two numbers or two strings, this is %s after %s", op, right, left)
		}
	}
	return Bool
}

func (c *checker) index(n *index) Type {
	of, at := c.check(n.of), c.check(n.at)
	switch of {
	case Any:
		c.want(n.at.place(), at, "[ ]", "a position or a field's name", Number, String)
	case List:
		c.want(n.at.place(), at, "[ ]", "a position", Number)
	case String:
		c.fail(n.of.place(), "write x[0:1] for a part of a string", "[ ] needs a list or a map, this is %s", of)
	default:
		c.fail(n.of.place(), nullHint(of), "[ ] needs a list or a map, this is %s", of)
	}
	c.position(n.at)
	return Any
}

func (c *checker) slice(n *slice) Type {
	of := c.check(n.of)
	c.want(n.of.place(), of, "[ : ]", "a string or a list", String, List)
	for _, bound := range []node{n.from, n.to} {
		if bound != nil {
			c.want(bound.place(), c.check(bound), "[ : ]", "positions", Number)
			c.position(bound)
		}
	}
	return of
}

// position refuses a constant that is no position.
func (c *checker) position(n node) {
	if l, ok := n.(*literal); ok && l.typ == Number {
		if _, ok := asPosition(l.value.number); !ok {
			c.fail(n.place(), "they are counted from 0", "positions are whole numbers from 0 up")
		}
	}
}

func (c *checker) call(n *call) Type {
	subject := c.check(n.subject)
	switch n.function {
	case "has":
		if !isPath(n.subject) {
			c.fail(n.subject.place(), "write has(a), has(a.b) or has(a[0])", "has needs an attribute or a part of one")
		}
		return Bool
	case "size":
		c.want(n.subject.place(), subject, "size", "a string, list, map or set", String, List)
		return Number
	}
	hint := ""
	if subject == List && n.function == "contains" {
		hint = "write x in list"
	}
	if subject != Any && subject != String {
		c.fail(n.subject.place(), hint, "%s needs a string before it, this is %s", n.function, subject)
	}
	c.want(n.argument.place(), c.check(n.argument), n.function, "a string", String)
	return Bool
}

// isPath reports whether a node names a place in the item.
func isPath(n node) bool {
	for {
		switch step := n.(type) {
		case *attribute:
			return true
		case *field:
			n = step.of
		case *index:
			n = step.of
		default:
			return false
		}
	}
}
