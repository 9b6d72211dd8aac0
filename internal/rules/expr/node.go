package expr

import "github.com/dynamill/dynamill/change"

// span is a node's place in the source, in bytes.
type span struct{ start, end int }

func (s span) place() span { return s }

// node is one operation of a parsed expression. Chains of one precedence are
// one node with many operands, so that a long source is not a deep tree.
type node interface{ place() span }

type (
	// literal is a constant, null included.
	literal struct {
		span
		value value
		typ   Type
	}
	// attribute reads one attribute of the item.
	attribute struct {
		span
		name string
	}
	// list makes a list of its elements; constant is that list if they all are constants.
	list struct {
		span
		elements []node
		constant []change.Value
	}
	// chain is operands joined from the left by operators of one precedence:
	// all ||, all &&, + and - mixed, or * and / mixed.
	chain struct {
		span
		first node
		rest  []link
	}
	// link is one operator of a chain and the operand on its right.
	link struct {
		op      kind
		operand node
		upTo    span // the chain's place up to this operand
	}
	// relation compares two operands, or looks for the left one in the right one.
	relation struct {
		span
		op          kind
		left, right node
	}
	// unary is ! or -.
	unary struct {
		span
		op      kind
		operand node
	}
	// field is a.b or a["b"] with a name that is known.
	field struct {
		span
		of   node
		name string
	}
	// index is a[i]: a list's element, or a map's field by a computed name.
	index struct {
		span
		of, at node
	}
	// slice is a[from:to]; either bound may be nil.
	slice struct {
		span
		of, from, to node
	}
	// call is has(x), size(x) or subject.method(argument).
	call struct {
		span
		function string
		subject  node
		argument node // nil but for methods
	}
)
