package expr

import (
	"github.com/dynamill/dynamill/internal/rules/expr/internal/operand"
	"github.com/dynamill/dynamill/internal/rules/expr/internal/scanner"
)

// base is what all nodes have: their place, and what is known of their type.
type base struct {
	scanner.Span
	typ Type
}

func (b *base) place() scanner.Span { return b.Span }
func (b *base) static() Type        { return b.typ }

// node is one operation of a parsed expression. Chains of one precedence are
// one node with many operands, so that a long source is not a deep tree.
type node interface {
	place() scanner.Span
	static() Type
}

type (
	// literal is a constant: a list of constants and null are ones, too.
	literal struct {
		base
		value operand.Value
	}
	// attribute reads one attribute of the item.
	attribute struct {
		base
		name string
	}
	// list makes a list of its elements.
	list struct {
		base
		elements []node
	}
	// chain is operands joined from the left by operators of one precedence:
	// all ||, all &&, + and - mixed, or * and / mixed.
	chain struct {
		base
		first node
		rest  []link
	}
	// link is one operator of a chain and the operand on its right.
	link struct {
		op      *operator
		operand node
		upTo    scanner.Span // the chain's place up to this operand
	}
	// relation compares two operands, or looks for the left one in the right one.
	relation struct {
		base
		op          *operator
		left, right node
	}
	// unary is ! or -.
	unary struct {
		base
		op      string
		operand node
	}
	// field is a.b or a["b"] with a name that is known.
	field struct {
		base
		of   node
		name string
	}
	// index is a[i]: a list's element, or a map's field by a computed name.
	index struct {
		base
		of, at node
	}
	// slice is a[from:to]; either bound may be nil.
	slice struct {
		base
		of, from, to node
	}
	// call is function(arguments) or subject.method(arguments).
	call struct {
		base
		function  *function
		subject   node // nil but for methods
		arguments []node
	}
)
