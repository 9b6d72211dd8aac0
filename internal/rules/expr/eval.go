package expr

import (
	"fmt"
	"math"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
)

// machine evaluates one program over one item. Its errors are *EvalErrors.
type machine struct {
	source string
	get    Lookup
}

// text returns the source of a place, for reasons.
func (m *machine) text(at span) string { return clip(m.source[at.start:at.end]) }

// unfit says that an operator does not take a value.
func (m *machine) unfit(at span, v value, operator, needs string) error {
	return &EvalError{CodeValueType, fmt.Sprintf("%s is %s; %s needs %s", m.text(at), v.shown(), operator, needs)}
}

func (m *machine) eval(n node) (value, error) {
	switch n := n.(type) {
	case *literal:
		return n.value, nil
	case *attribute:
		return wrap(m.get(n.name)), nil
	case *list:
		return m.list(n)
	case *chain:
		switch n.rest[0].op {
		case tokenOr, tokenAnd:
			b, err := m.junction(n)
			return truthValue(b), err
		}
		return m.arithmetic(n)
	case *relation:
		b, err := m.relation(n)
		return truthValue(b), err
	case *unary:
		return m.unary(n)
	case *field:
		return m.field(n)
	case *index:
		return m.index(n)
	case *slice:
		return m.slice(n)
	case *call:
		return m.call(n)
	}
	panic(fmt.Sprintf("expression node %T is unknown to the machine", n))
}

// truth evaluates a node where a condition is needed. Missing is false.
func (m *machine) truth(n node, operator string) (bool, error) {
	v, err := m.eval(n)
	if err != nil || v.missing() {
		return false, err
	}
	if v.Kind() != change.KindBool {
		return false, m.unfit(n.place(), v, operator, "a condition")
	}
	return v.Bool(), nil
}

// junction evaluates && or ||, and nothing behind the operand that decides.
func (m *machine) junction(n *chain) (bool, error) {
	op := n.rest[0].op
	decides := op == tokenOr
	b, err := m.truth(n.first, op.String())
	for i := 0; err == nil && b != decides && i < len(n.rest); i++ {
		b, err = m.truth(n.rest[i].operand, op.String())
	}
	return b && err == nil, err
}

func (m *machine) list(n *list) (value, error) {
	if n.constant != nil {
		return wrap(change.List(n.constant)), nil
	}
	elements := make([]change.Value, len(n.elements))
	for i, element := range n.elements {
		v, err := m.eval(element)
		if err != nil {
			return value{}, err
		}
		if elements[i] = v.plain(); v.missing() {
			elements[i] = change.Null()
		}
	}
	return wrap(change.List(elements)), nil
}

func (m *machine) relation(n *relation) (bool, error) {
	left, err := m.eval(n.left)
	if err != nil {
		return false, err
	}
	right, err := m.eval(n.right)
	if err != nil {
		return false, err
	}
	switch {
	case isNull(n.left):
		return right.missing() == (n.op == tokenEqual), nil
	case isNull(n.right):
		return left.missing() == (n.op == tokenEqual), nil
	case left.missing() || right.missing():
		return n.op == tokenNotEqual, nil
	}
	switch n.op {
	case tokenEqual:
		return equal(left, right), nil
	case tokenNotEqual:
		return !equal(left, right), nil
	case tokenIn:
		found, ok := within(left, right)
		if !ok {
			return false, m.unfit(n.right.place(), right, "in", "a list, set or map on its right")
		}
		return found, nil
	}
	order, err := m.order(n, left, right)
	if err != nil {
		return false, err
	}
	switch n.op {
	case tokenLess:
		return order < 0, nil
	case tokenLessEqual:
		return order <= 0, nil
	case tokenGreater:
		return order > 0, nil
	}
	return order >= 0, nil
}

func isNull(n node) bool {
	l, ok := n.(*literal)
	return ok && l.typ == Null
}

// order compares two numbers, two strings or two binary values; texts byte by
// byte, as DynamoDB sorts them.
func (m *machine) order(n *relation, left, right value) (int, error) {
	if left.Kind() != right.Kind() {
		return 0, &EvalError{CodeValueType, fmt.Sprintf("%s is %s and %s is %s; %s compares values of one type",
			m.text(n.left.place()), left.shown(), m.text(n.right.place()), right.shown(), n.op)}
	}
	switch left.Kind() {
	case change.KindString, change.KindBinary:
		return strings.Compare(left.Text(), right.Text()), nil
	case change.KindNumber:
		a, err := m.number(left, n.left.place(), n.op.String())
		if err != nil {
			return 0, err
		}
		b, err := m.number(right, n.right.place(), n.op.String())
		return a.Cmp(b), err
	}
	return 0, m.unfit(n.left.place(), left, n.op.String(), "two numbers or two strings")
}

func (m *machine) unary(n *unary) (value, error) {
	if n.op == tokenNot {
		b, err := m.truth(n.operand, "!")
		return truthValue(!b && err == nil), err
	}
	v, err := m.eval(n.operand)
	if err != nil || v.missing() {
		return value{}, err
	}
	x, err := m.number(v, n.operand.place(), "-")
	if err != nil {
		return value{}, err
	}
	return numberValue(x.Neg()), nil
}

func (m *machine) call(n *call) (value, error) {
	if n.function == "has" {
		v, err := m.reach(n.subject)
		return truthValue(err == nil && !v.missing()), err
	}
	subject, err := m.eval(n.subject)
	if err != nil {
		return value{}, err
	}
	if n.function == "size" {
		if subject.missing() {
			return value{}, nil
		}
		size, ok := subject.size()
		if !ok {
			return value{}, m.unfit(n.subject.place(), subject, "size", "a string, list, map or set")
		}
		return numberValue(decimal.New(int64(size))), nil
	}
	argument, err := m.eval(n.argument)
	if err != nil {
		return value{}, err
	}
	return m.method(n, subject, argument)
}

func (m *machine) method(n *call, subject, argument value) (value, error) {
	switch {
	case subject.missing() || argument.missing():
		return truthValue(false), nil
	case subject.Kind() != change.KindString:
		return value{}, m.unfit(n.subject.place(), subject, n.function, "a string before it")
	case argument.Kind() != change.KindString:
		return value{}, m.unfit(n.argument.place(), argument, n.function, "a string")
	}
	text, part := subject.Text(), argument.Text()
	switch n.function {
	case "startsWith":
		return truthValue(strings.HasPrefix(text, part)), nil
	case "endsWith":
		return truthValue(strings.HasSuffix(text, part)), nil
	}
	return truthValue(strings.Contains(text, part)), nil
}

// asPosition returns a number as a position in a string or list; false if it
// is negative or has a fraction. What is beyond every list is math.MaxInt32.
func asPosition(n decimal.Decimal) (int, bool) {
	if !n.IsInteger() || n.Cmp(decimal.New(0)) < 0 {
		return 0, false
	}
	i, ok := n.Int64()
	if !ok || i > math.MaxInt32 {
		return math.MaxInt32, true
	}
	return int(i), true
}
