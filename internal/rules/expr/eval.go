package expr

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
)

// machine evaluates one program over one item. It keeps the first error, an *EvalError:
// after it, every value is missing and none has a meaning.
type machine struct {
	source string
	get    Lookup
	err    error
}

func (m *machine) fail(code, format string, args ...any) value {
	if m.err == nil {
		m.err = &EvalError{code, fmt.Sprintf(format, args...)}
	}
	return value{}
}

// text returns the source of a place, for reasons.
func (m *machine) text(at span) string { return clip(m.source[at.start:at.end]) }

// unfit says that an operator does not take a value.
func (m *machine) unfit(at span, v value, operator, needs string) value {
	return m.fail(CodeValueType, "%s is %s; %s needs %s", m.text(at), v.shown(), operator, needs)
}

func (m *machine) eval(n node) value {
	if m.err != nil {
		return value{}
	}
	switch n := n.(type) {
	case *literal:
		return n.value
	case *attribute:
		return wrap(m.get(n.name))
	case *list:
		return m.list(n)
	case *chain:
		if n.rest[0].op.compute == nil {
			return truthValue(m.junction(n))
		}
		return m.arithmetic(n)
	case *relation:
		return truthValue(m.relation(n, m.eval(n.left), m.eval(n.right)))
	case *unary:
		if n.op == "!" {
			return truthValue(!m.truth(n.operand, "!"))
		}
		return m.negative(n.operand)
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
func (m *machine) truth(n node, operator string) bool {
	v := m.eval(n)
	if !v.missing() && v.Kind() != change.KindBool {
		m.unfit(n.place(), v, operator, "a condition")
	}
	return v.Bool()
}

// junction evaluates && or ||, and nothing behind the operand that decides.
func (m *machine) junction(n *chain) bool {
	op := n.rest[0].op.text
	decides := op == "||"
	b := m.truth(n.first, op)
	for i := 0; b != decides && i < len(n.rest); i++ {
		b = m.truth(n.rest[i].operand, op)
	}
	return b
}

func (m *machine) list(n *list) value {
	elements := make([]change.Value, len(n.elements))
	for i, element := range n.elements {
		if v := m.eval(element); v.missing() {
			elements[i] = change.Null()
		} else {
			elements[i] = v.plain()
		}
	}
	return wrap(change.List(elements))
}

func (m *machine) relation(n *relation, left, right value) bool {
	switch n.op.text {
	case "==":
		return same(n, left, right)
	case "!=":
		return !same(n, left, right)
	}
	if left.missing() || right.missing() {
		return false
	}
	if n.op.holds != nil {
		return n.op.holds(m.order(n, left, right))
	}
	found, ok := within(left, right)
	if !ok {
		m.unfit(n.right.place(), right, "in", "a list, set or map on its right")
	}
	return found
}

// same reports whether two values are equal. A missing value is equal to the word null alone.
func same(n *relation, left, right value) bool {
	switch {
	case n.left.static() == Null:
		return right.missing()
	case n.right.static() == Null:
		return left.missing()
	}
	return !left.missing() && !right.missing() && equal(left, right)
}

// order compares two numbers, two strings or two binary values; texts byte by
// byte, as DynamoDB sorts them.
func (m *machine) order(n *relation, left, right value) int {
	if left.Kind() != right.Kind() {
		m.fail(CodeValueType, "%s is %s and %s is %s; %s compares values of one type",
			m.text(n.left.place()), left.shown(), m.text(n.right.place()), right.shown(), n.op.text)
		return 0
	}
	switch left.Kind() {
	case change.KindString, change.KindBinary:
		return strings.Compare(left.Text(), right.Text())
	case change.KindNumber:
		a, b := m.number(left, n.left.place(), n.op.text), m.number(right, n.right.place(), n.op.text)
		return a.Cmp(b)
	}
	m.unfit(n.left.place(), left, n.op.text, ordered)
	return 0
}

// number returns a value as a number, or says that the operator needs one.
func (m *machine) number(v value, at span, operator string) decimal.Decimal {
	n, ok := v.decimal()
	if !ok {
		m.unfit(at, v, operator, "a number")
	}
	return n
}

func (m *machine) negative(operand node) value {
	v := m.eval(operand)
	if v.missing() {
		return value{}
	}
	return numberValue(m.number(v, operand.place(), "-").Neg())
}

// arithmetic evaluates a chain of + and -, or of * and /, from the left. Every
// operand is evaluated; the result is missing if one of them is.
func (m *machine) arithmetic(n *chain) value {
	acc, at := m.eval(n.first), n.first.place()
	var text []byte // of acc while strings are concatenated, so that a chain costs as much as it is long
	for i := range n.rest {
		l := &n.rest[i]
		right := m.eval(l.operand)
		switch {
		case acc.missing() || right.missing():
			acc = value{}
		case l.op.text == "+" && acc.Kind() == change.KindString && right.Kind() == change.KindString:
			if text == nil {
				text = append(text, acc.Text()...)
			}
			if text = append(text, right.Text()...); len(text) > StringBytesMax {
				return m.fail(CodeValueSize, "%s is longer than %d bytes", m.text(l.upTo), StringBytesMax)
			}
		default:
			if text != nil {
				acc = wrap(change.String(string(text)))
			}
			acc = m.operate(l, acc, right, at)
		}
		at = l.upTo
	}
	if text != nil && !acc.missing() {
		acc = wrap(change.String(string(text)))
	}
	return acc
}

// operate applies one arithmetic operator to two numbers.
func (m *machine) operate(l *link, left, right value, leftAt span) value {
	op, rightAt := l.op.text, l.operand.place()
	if op == "+" && left.Kind() != right.Kind() {
		return m.fail(CodeValueType, "%s is %s and %s is %s; + needs two numbers or two strings",
			m.text(leftAt), left.shown(), m.text(rightAt), right.shown())
	}
	a, b := m.number(left, leftAt, op), m.number(right, rightAt, op)
	if m.err != nil {
		return value{}
	}
	result, err := l.op.compute(a, b)
	switch {
	case err == nil:
		return numberValue(result)
	case errors.Is(err, decimal.ErrDivisionByZero):
		return m.fail(CodeNumberDivision, "%s divides %s by zero", m.text(l.upTo), a)
	case op == "/":
		return m.fail(CodeNumberOverflow, "%s is not exact within 38 digits: %s / %s", m.text(l.upTo), a, b)
	}
	return m.fail(CodeNumberOverflow, "%s does not fit into a DynamoDB number (38 digits): %s %s %s", m.text(l.upTo), a, op, b)
}

// field evaluates a.b: missing where the map or its field is.
func (m *machine) field(n *field) value {
	of := m.eval(n.of)
	switch of.Kind() {
	case change.KindAbsent, change.KindNull, change.KindMap:
		return wrap(of.Map()[n.name])
	}
	return m.unfit(n.of.place(), of, "its field "+clip(n.name), "a map")
}

// index evaluates a[i]: missing where the list ends before i.
func (m *machine) index(n *index) value {
	of, at := m.eval(n.of), m.eval(n.at)
	v, ok := part(of, at)
	switch {
	case ok || of.missing() || at.missing():
		return v
	case of.Kind() == change.KindMap:
		return m.unfit(n.at.place(), at, "[ ] of a map", "a field's name")
	case of.Kind() == change.KindList:
		return m.noPosition(n.at, at)
	}
	return m.unfit(n.of.place(), of, "[ ]", "a list or a map")
}

// part returns a map's field or a list's element; false if there can be none.
func part(of, at value) (value, bool) {
	if of.Kind() == change.KindMap && at.Kind() == change.KindString {
		return wrap(of.Map()[at.Text()]), true
	}
	i, ok := at.position()
	if !ok || of.Kind() != change.KindList {
		return value{}, false
	}
	if i >= len(of.List()) {
		return value{}, true
	}
	return wrap(of.List()[i]), true
}

// slice evaluates a[from:to], with bounds beyond the end held at the end.
func (m *machine) slice(n *slice) value {
	of := m.eval(n.of)
	from, okFrom := m.bound(n.from, 0)
	to, okTo := m.bound(n.to, math.MaxInt32)
	if of.missing() || !okFrom || !okTo {
		return value{}
	}
	part, ok := of.cut(from, to)
	if !ok {
		return m.unfit(n.of.place(), of, "[ : ]", "a string or a list")
	}
	return part
}

// bound evaluates one bound of a slice; false if it is missing.
func (m *machine) bound(n node, otherwise int) (int, bool) {
	if n == nil {
		return otherwise, true
	}
	v := m.eval(n)
	if v.missing() {
		return 0, false
	}
	i, ok := v.position()
	if !ok {
		m.noPosition(n, v)
	}
	return i, ok
}

func (m *machine) noPosition(n node, v value) value {
	return m.unfit(n.place(), v, "a position", "a whole number from 0 up")
}

// reach evaluates has's argument: a step that the value does not allow leads
// to nothing, so that has tells items of different shapes apart. Only what is
// computed inside brackets can fail.
func (m *machine) reach(n node) value {
	switch n := n.(type) {
	case *field:
		return wrap(m.reach(n.of).Map()[n.name])
	case *index:
		v, _ := part(m.reach(n.of), m.eval(n.at))
		return v
	}
	return m.eval(n)
}
