// Package expr is the language of the rule file's expressions, and of the
// templates that hold expressions. It has the syntax of a CEL subset, decimals
// exact to 38 digits, and DynamoDB values as its values; docs/expressions.md
// holds the grammar and the semantics.
//
// Compile does all that needs no item: it parses, checks the types it can know
// and lists the attributes read. A Program is immutable, evaluates purely and
// the same way every time, and is bounded in depth, memory and cost, so that a
// source item's effects are a function of its image alone (promises 1 and 5).
// Its internal packages split the source into tokens, and compute with values. Beside them it imports change,
// internal/decimal, internal/printable and internal/rules/internal/spelling only.
package expr

import (
	"cmp"
	"maps"
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
)

// Bounds of the language.
const (
	SourceBytesMax = 4096      // length of a source text, in bytes
	DepthMax       = 32        // parentheses, operators, lists, calls and path steps inside one another
	StringBytesMax = 400 << 10 // length of a concatenated string, in bytes: the size limit of a DynamoDB item
)

// Codes of an Error.
const (
	CodeSyntax          = "expr.syntax"
	CodeUnknownFunction = "expr.unknown_function"
	CodeType            = "expr.type"
	CodeTooDeep         = "expr.too_deep"
	CodeTooLong         = "expr.too_long"
	CodeNumber          = "expr.number"
	CodeString          = "expr.string"
	CodeUnclosed        = "template.unclosed" // of a Template
	CodeEmpty           = "template.empty"    // of a Template
)

// Codes of an EvalError.
const (
	CodeValueType      = "value.type"      // a value is of a type that the operator does not take
	CodeValueSize      = "value.size"      // a concatenated string is longer than StringBytesMax
	CodeNumberOverflow = "number.overflow" // a result does not fit into 38 digits or DynamoDB's magnitude
	CodeNumberDivision = "number.division" // a division by zero
	CodeNumberWidth    = "number.width"    // a number does not fit into the width of pad
)

// Error says what is wrong with a source text, and where.
type Error struct {
	Offset, Length int    // in bytes, within the source; Length is 0 where something is missing
	Code           string // one of the expr. codes
	Message        string // what is wrong
	Hint           string // what to write instead; may be ""
}

// Error returns the message and the hint, without the position.
func (e *Error) Error() string {
	if e.Hint == "" {
		return e.Message
	}
	return e.Message + " (" + e.Hint + ")"
}

// EvalError says why one item has no answer.
type EvalError struct {
	Code   string // one of the value. and number. codes
	Reason string // a sentence that names the operand and its value
}

// Error returns the reason.
func (e *EvalError) Error() string { return e.Reason }

// Type is what is known of an expression before it is run.
type Type uint8

// The static types. Any is an attribute's: unknown until it is run. Null is
// the literal null's alone.
const (
	Any Type = iota
	Bool
	Number
	String
	List
	Null
)

// String returns the type in words: "a number".
func (t Type) String() string {
	return [...]string{"a value", "a condition", "a number", "a string", "a list", "null"}[t]
}

// Lookup returns an item's attribute; the absent Value if there is none.
type Lookup func(attribute string) change.Value

// Program is a compiled expression. It is immutable and safe for concurrent use.
type Program struct {
	source string
	root   node
	reads  []string
}

// Compile parses and checks a source text. The error is an *Error.
func Compile(src string) (*Program, error) {
	p := &parser{source: src, reads: map[string]bool{}}
	root := p.parse()
	if err := cmp.Or(p.err, p.mistake); err != nil {
		return nil, err
	}
	return &Program{source: src, root: root, reads: slices.Sorted(maps.Keys(p.reads))}, nil
}

// String returns the source text.
func (p *Program) String() string { return p.source }

// Reads returns the names of the attributes that the expression reads, sorted.
func (p *Program) Reads() []string { return slices.Clone(p.reads) }

// Type returns what is known of the result: Bool, Number, String, List, Null,
// or Any where only an item's attributes decide. A condition is Bool or Any, an
// amount Number or Any.
func (p *Program) Type() Type { return p.root.static() }

// Condition evaluates the expression as a condition. A missing result (absent
// or NULL) is false. The error is an *EvalError.
func (p *Program) Condition(get Lookup) (bool, error) {
	m := machine{source: p.source, get: get}
	holds := m.truth(p.root, "where")
	return holds && m.err == nil, m.err
}

// Value evaluates the expression. It returns false where the result is missing (absent or NULL). Numbers are in plain digits.
// The error is an *EvalError.
func (p *Program) Value(get Lookup) (change.Value, bool, error) {
	m := machine{source: p.source, get: get}
	v := m.eval(p.root)
	if m.err != nil || v.Missing() {
		return change.Value{}, false, m.err
	}
	return v.Written(), true, nil
}

// Amount evaluates the expression as a number. It returns false where an
// attribute that it needs is missing (absent or NULL). The error is an
// *EvalError.
func (p *Program) Amount(get Lookup) (decimal.Decimal, bool, error) {
	m := machine{source: p.source, get: get}
	v := m.eval(p.root)
	if v.Missing() || m.err != nil {
		return decimal.Decimal{}, false, m.err
	}
	n := m.number(v, p.root.place(), "a sum")
	return n, m.err == nil, m.err
}
