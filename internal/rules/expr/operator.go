package expr

import (
	"slices"

	"github.com/dynamill/dynamill/internal/decimal"
)

// operator is one that stands between two operands.
type operator struct {
	text  string
	needs string // the operands that it takes, in words
	takes []Type // their types; nil for all
	gives Type   // Any: the type of its operands

	compute func(a, b decimal.Decimal) (decimal.Decimal, error) // of two numbers; nil for relations and conditions
	holds   func(order int) bool                                // of two values in an order; nil for others
}

var (
	or  = []operator{{text: "||", needs: "conditions", takes: []Type{Bool}, gives: Bool}}
	and = []operator{{text: "&&", needs: "conditions", takes: []Type{Bool}, gives: Bool}}

	relations = []operator{
		{text: "==", gives: Bool},
		{text: "!=", gives: Bool},
		{text: "in", gives: Bool},
		{text: "<", needs: ordered, takes: numbersOrStrings, gives: Bool, holds: func(order int) bool { return order < 0 }},
		{text: "<=", needs: ordered, takes: numbersOrStrings, gives: Bool, holds: func(order int) bool { return order <= 0 }},
		{text: ">", needs: ordered, takes: numbersOrStrings, gives: Bool, holds: func(order int) bool { return order > 0 }},
		{text: ">=", needs: ordered, takes: numbersOrStrings, gives: Bool, holds: func(order int) bool { return order >= 0 }},
	}
	additions = []operator{
		{text: "+", needs: ordered, takes: numbersOrStrings, compute: decimal.Decimal.Add},
		{text: "-", needs: "numbers", takes: []Type{Number}, gives: Number, compute: decimal.Decimal.Sub},
	}
	multiplications = []operator{
		{text: "*", needs: "numbers", takes: []Type{Number}, gives: Number, compute: decimal.Decimal.Mul},
		{text: "/", needs: "numbers", takes: []Type{Number}, gives: Number, compute: decimal.Decimal.Quo},
	}
)

const ordered = "two numbers or two strings"

var numbersOrStrings = []Type{Number, String}

// mistype keeps the first mistake in the types. What the parser makes after one has no meaning.
func (p *parser) mistype(n node, hint, format string, args ...any) {
	if p.mistake == nil {
		p.mistake = problem(n.place(), CodeType, hint, format, args...)
	}
}

// want refuses a node of a type that an operator does not take. A type that is not known may fit.
func (p *parser) want(n node, operator, needs string, allowed ...Type) {
	if got := n.static(); got != Any && !slices.Contains(allowed, got) {
		p.mistype(n, nullHint(got), "%s needs %s, this is %s", operator, needs, got)
	}
}

func nullHint(got Type) string {
	if got == Null {
		return "null is only compared, with == and !="
	}
	return ""
}

// result checks the operands of an operator, and returns what is known of its result.
func (p *parser) result(op *operator, left, right node) Type {
	l, r := left.static(), right.static()
	switch {
	case op.text == "in":
		p.want(left, op.text, "a value on its left", Bool, Number, String, List)
		if r == String {
			p.mistype(right, "write text.contains(part)", "in needs a list, set or map on its right, this is %s", r)
		}
		p.want(right, op.text, "a list, set or map on its right", List)
	case op.takes != nil:
		p.want(left, op.text, op.needs, op.takes...)
		p.want(right, op.text, op.needs, op.takes...)
		if len(op.takes) > 1 && l != Any && r != Any && l != r {
			p.mistype(right, "", "%s needs %s, this is %s after %s", op.text, op.needs, r, l)
		}
	}
	switch {
	case op.gives != Any:
		return op.gives
	case l != Any:
		return l
	}
	return r
}

// position refuses a constant that is no position.
func (p *parser) position(n node) {
	if l, ok := n.(*literal); ok && l.typ == Number {
		if _, ok := l.value.Position(); !ok {
			p.mistype(n, "they are counted from 0", "positions are whole numbers from 0 up")
		}
	}
}
