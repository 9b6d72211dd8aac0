package expr

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/printable"
	"github.com/dynamill/dynamill/internal/rules/expr/internal/operand"
	"github.com/dynamill/dynamill/internal/rules/expr/internal/scanner"
)

// machine evaluates one program over one item. It keeps the first error, an *EvalError:
// after it, every value is missing and none has a meaning.
type machine struct {
	source string
	get    Lookup
	err    error
}

func (m *machine) fail(code, format string, args ...any) operand.Value {
	if m.err == nil {
		m.err = &EvalError{code, fmt.Sprintf(format, args...)}
	}
	return operand.Value{}
}

// text returns the source of a place, for reasons.
func (m *machine) text(at scanner.Span) string { return printable.Shortened(m.source[at.Start:at.End]) }

// unfit says that an operator does not take a value.
func (m *machine) unfit(at scanner.Span, v operand.Value, operator, needs string) operand.Value {
	return m.fail(CodeValueType, "%s is %s; %s needs %s", m.text(at), v.Shown(), operator, needs)
}

func (m *machine) eval(n node) operand.Value {
	if m.err != nil {
		return operand.Value{}
	}
	switch n := n.(type) {
	case *literal:
		return n.value
	case *attribute:
		return operand.Of(m.get(n.name))
	case *list:
		return m.list(n)
	case *chain:
		if n.rest[0].op.compute == nil {
			return operand.Bool(m.junction(n))
		}
		return m.arithmetic(n)
	case *relation:
		return operand.Bool(m.relation(n, m.eval(n.left), m.eval(n.right)))
	case *unary:
		if n.op == "!" {
			return operand.Bool(!m.truth(n.operand, "!"))
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
	if !v.Missing() && v.Kind() != change.KindBool {
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

func (m *machine) list(n *list) operand.Value {
	elements := make([]change.Value, len(n.elements))
	for i, element := range n.elements {
		if v := m.eval(element); v.Missing() {
			elements[i] = change.Null()
		} else {
			elements[i] = v.Plain()
		}
	}
	return operand.Of(change.List(elements))
}

func (m *machine) relation(n *relation, left, right operand.Value) bool {
	switch n.op.text {
	case "==":
		return same(n, left, right)
	case "!=":
		return !same(n, left, right)
	}
	if left.Missing() || right.Missing() {
		return false
	}
	if n.op.holds != nil {
		return n.op.holds(m.order(n, left, right))
	}
	found, ok := left.In(right)
	if !ok {
		m.unfit(n.right.place(), right, "in", "a list, set or map on its right")
	}
	return found
}

// same reports whether two values are equal. A missing value is equal to the word null alone.
func same(n *relation, left, right operand.Value) bool {
	switch {
	case n.left.static() == Null:
		return right.Missing()
	case n.right.static() == Null:
		return left.Missing()
	}
	return !left.Missing() && !right.Missing() && left.Equal(right)
}

// order compares two numbers, two strings or two binary values; texts byte by
// byte, as DynamoDB sorts them.
func (m *machine) order(n *relation, left, right operand.Value) int {
	if left.Kind() != right.Kind() {
		m.fail(CodeValueType, "%s is %s and %s is %s; %s compares values of one type",
			m.text(n.left.place()), left.Shown(), m.text(n.right.place()), right.Shown(), n.op.text)
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
func (m *machine) number(v operand.Value, at scanner.Span, operator string) decimal.Decimal {
	n, ok := v.Decimal()
	if !ok {
		m.unfit(at, v, operator, "a number")
	}
	return n
}

func (m *machine) negative(of node) operand.Value {
	v := m.eval(of)
	if v.Missing() {
		return operand.Value{}
	}
	return operand.Number(m.number(v, of.place(), "-").Neg())
}

// arithmetic evaluates a chain of + and -, or of * and /, from the left. Every
// operand is evaluated; the result is missing if one of them is.
func (m *machine) arithmetic(n *chain) operand.Value {
	acc, at := m.eval(n.first), n.first.place()
	var text []byte // of acc while strings are concatenated, so that a chain costs as much as it is long
	for i := range n.rest {
		l := &n.rest[i]
		right := m.eval(l.operand)
		switch {
		case acc.Missing() || right.Missing():
			acc = operand.Value{}
		case l.op.text == "+" && acc.Kind() == change.KindString && right.Kind() == change.KindString:
			if text == nil {
				text = append(text, acc.Text()...)
			}
			if text = append(text, right.Text()...); len(text) > StringBytesMax {
				return m.fail(CodeValueSize, "%s is longer than %d bytes", m.text(l.upTo), StringBytesMax)
			}
		default:
			if text != nil {
				acc = operand.Of(change.String(string(text)))
			}
			acc = m.operate(l, acc, right, at)
		}
		at = l.upTo
	}
	if text != nil && !acc.Missing() {
		acc = operand.Of(change.String(string(text)))
	}
	return acc
}

// operate applies one arithmetic operator to two numbers.
func (m *machine) operate(l *link, left, right operand.Value, leftAt scanner.Span) operand.Value {
	op, rightAt := l.op.text, l.operand.place()
	if op == "+" && left.Kind() != right.Kind() {
		return m.fail(CodeValueType, "%s is %s and %s is %s; + needs two numbers or two strings",
			m.text(leftAt), left.Shown(), m.text(rightAt), right.Shown())
	}
	a, b := m.number(left, leftAt, op), m.number(right, rightAt, op)
	if m.err != nil {
		return operand.Value{}
	}
	result, err := l.op.compute(a, b)
	switch {
	case err == nil:
		return operand.Number(result)
	case errors.Is(err, decimal.ErrDivisionByZero):
		return m.fail(CodeNumberDivision, "%s divides %s by zero", m.text(l.upTo), a)
	case op == "/":
		return m.fail(CodeNumberOverflow, "%s is not exact within 38 digits: %s / %s", m.text(l.upTo), a, b)
	}
	return m.fail(CodeNumberOverflow, "%s does not fit into a DynamoDB number (38 digits): %s %s %s", m.text(l.upTo), a, op, b)
}

// field evaluates a.b: missing where the map or its field is.
func (m *machine) field(n *field) operand.Value {
	of := m.eval(n.of)
	switch of.Kind() {
	case change.KindAbsent, change.KindNull, change.KindMap:
		return operand.Of(of.Map()[n.name])
	}
	return m.unfit(n.of.place(), of, "its field "+printable.Shortened(n.name), "a map")
}

// index evaluates a[i]: missing where the list ends before i.
func (m *machine) index(n *index) operand.Value {
	of, at := m.eval(n.of), m.eval(n.at)
	v, ok := of.Part(at)
	switch {
	case ok || of.Missing() || at.Missing():
		return v
	case of.Kind() == change.KindMap:
		return m.unfit(n.at.place(), at, "[ ] of a map", "a field's name")
	case of.Kind() == change.KindList:
		return m.noPosition(n.at, at)
	}
	return m.unfit(n.of.place(), of, "[ ]", "a list or a map")
}

// slice evaluates a[from:to], with bounds beyond the end held at the end.
func (m *machine) slice(n *slice) operand.Value {
	of := m.eval(n.of)
	from, okFrom := m.bound(n.from, 0)
	to, okTo := m.bound(n.to, math.MaxInt32)
	if of.Missing() || !okFrom || !okTo {
		return operand.Value{}
	}
	part, ok := of.Cut(from, to)
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
	if v.Missing() {
		return 0, false
	}
	i, ok := v.Position()
	if !ok {
		m.noPosition(n, v)
	}
	return i, ok
}

func (m *machine) noPosition(n node, v operand.Value) operand.Value {
	return m.unfit(n.place(), v, "a position", "a whole number from 0 up")
}

// reach evaluates has's argument: a step that the value does not allow leads
// to nothing, so that has tells items of different shapes apart. Only what is
// computed inside brackets can fail.
func (m *machine) reach(n node) operand.Value {
	switch n := n.(type) {
	case *field:
		return operand.Of(m.reach(n.of).Map()[n.name])
	case *index:
		v, _ := m.reach(n.of).Part(m.eval(n.at))
		return v
	}
	return m.eval(n)
}
