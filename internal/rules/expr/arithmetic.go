package expr

import (
	"errors"
	"fmt"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
)

// number returns a value as a number, or says that the operator needs one.
func (m *machine) number(v value, at span, operator string) (decimal.Decimal, error) {
	n, ok := v.decimal()
	if !ok {
		return decimal.Decimal{}, m.unfit(at, v, operator, "a number")
	}
	return n, nil
}

// arithmetic evaluates a chain of + and -, or of * and /, from the left. Every
// operand is evaluated; the result is missing if one of them is.
func (m *machine) arithmetic(n *chain) (value, error) {
	acc, err := m.eval(n.first)
	if err != nil {
		return value{}, err
	}
	var text []byte // of acc while strings are concatenated, so that a chain costs as much as it is long
	at := n.first.place()
	for _, l := range n.rest {
		right, err := m.eval(l.operand)
		if err != nil {
			return value{}, err
		}
		switch {
		case acc.missing() || right.missing():
			acc = value{}
		case l.op == tokenPlus && acc.Kind() == change.KindString && right.Kind() == change.KindString:
			if text == nil {
				text = append(text, acc.Text()...)
			}
			if text = append(text, right.Text()...); len(text) > StringBytesMax {
				return value{}, &EvalError{CodeValueSize, fmt.Sprintf("%s is longer than %d bytes", m.text(l.upTo), StringBytesMax)}
			}
		default:
			if text != nil {
				acc = wrap(change.String(string(text)))
			}
			if acc, err = m.operate(l, acc, right, at); err != nil {
				return value{}, err
			}
		}
		at = l.upTo
	}
	if text != nil && !acc.missing() {
		acc = wrap(change.String(string(text)))
	}
	return acc, nil
}

// operate applies one arithmetic operator to two numbers.
func (m *machine) operate(l link, left, right value, leftAt span) (value, error) {
	rightAt := l.operand.place()
	if l.op == tokenPlus && left.Kind() != right.Kind() {
		return value{}, &EvalError{CodeValueType, fmt.Sprintf("%s is %s and %s is %s; + needs two numbers or two strings",
			m.text(leftAt), left.shown(), m.text(rightAt), right.shown())}
	}
	a, err := m.number(left, leftAt, l.op.String())
	if err != nil {
		return value{}, err
	}
	b, err := m.number(right, rightAt, l.op.String())
	if err != nil {
		return value{}, err
	}
	var result decimal.Decimal
	switch l.op {
	case tokenPlus:
		result, err = a.Add(b)
	case tokenMinus:
		result, err = a.Sub(b)
	case tokenTimes:
		result, err = a.Mul(b)
	default:
		result, err = a.Quo(b)
	}
	what := fmt.Sprintf
	switch {
	case err == nil:
		return numberValue(result), nil
	case errors.Is(err, decimal.ErrDivisionByZero):
		return value{}, &EvalError{CodeNumberDivision, what("%s divides %s by zero", m.text(l.upTo), a)}
	case l.op == tokenDivide:
		return value{}, &EvalError{CodeNumberOverflow, what("%s does not come out even within 38 digits: %s / %s", m.text(l.upTo), a, b)}
	}
	return value{}, &EvalError{CodeNumberOverflow,
		what("%s does not fit into a DynamoDB number (38 digits): %s %s %s", m.text(l.upTo), a, l.op, b)}
}
