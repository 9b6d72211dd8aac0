package check

import (
	"slices"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/rules/expr"
)

// Equals is one attribute that an entity's items must have.
type Equals struct {
	Attribute string
	Value     change.Value // S, N or BOOL
}

// Ref is where a text comes from on an item: a variable of its key, an attribute, the element of its
// list for which a rule takes it, or an expression. Attribute "" and no expression with the slot noSlot mean nowhere.
type Ref struct {
	Slot       int
	Attribute  string // of an element: its name in the rule
	Expression *expr.Program
}

const (
	noSlot      = -1
	elementSlot = -2
)

var nowhere = Ref{Slot: noSlot}

// IsVariable reports whether the text is a variable of the key.
func (r Ref) IsVariable() bool { return r.Slot >= 0 }

// IsElement reports whether the text is an element of a list.
func (r Ref) IsElement() bool { return r.Slot == elementSlot }

// Holds reports whether the text comes from the element of this name.
func (r Ref) Holds(element string) bool {
	return r.IsElement() || r.Expression != nil && element != "" && slices.Contains(r.Expression.Reads(), element)
}

// isSame reports whether both say the same of every item.
func (r Ref) isSame(other Ref) bool {
	if r.Expression == nil || other.Expression == nil {
		return r == other && r != nowhere
	}
	return r.Expression.String() == other.Expression.String()
}

// IsAttribute reports whether the text is an attribute.
func (r Ref) IsAttribute() bool { return r.Slot == noSlot && r.Attribute != "" }

// IsNowhere reports whether nothing says where the text comes from.
func (r Ref) IsNowhere() bool { return r == nowhere }

// Join says where the other side's key comes from on this side: a ref for each
// of its variables, by slot; or, if ByUnique, one ref for its Unique value.
type Join struct {
	Fill     []Ref
	Unique   Ref
	ByUnique bool
}

// Refs are all refs by which the other side is found.
func (j *Join) Refs() []Ref {
	if j.ByUnique {
		return []Ref{j.Unique}
	}
	return j.Fill
}
