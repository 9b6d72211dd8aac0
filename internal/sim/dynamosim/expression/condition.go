package expression

import (
	"bytes"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/sim/dynamosim/values"
)

// Condition is a parsed condition, filter or key condition.
type Condition struct{ root node }

// Holds evaluates the condition; a nil or empty item is one that does not exist.
func (c Condition) Holds(item values.Item) bool { return c.root.holds(item) }

// TopLevelNames returns the names of the attributes that the condition looks at.
func (c Condition) TopLevelNames() []string {
	var names []string
	c.root.visit(func(o operand) {
		for {
			s, ok := o.(sizeOf)
			if !ok {
				break
			}
			o = s.of
		}
		if p, ok := o.(Path); ok {
			names = append(names, p[0].Name)
		}
	})
	return names
}

type node interface {
	holds(item values.Item) bool
	visit(f func(operand))
}

type (
	junction struct {
		any      bool // OR, else AND
		branches []node
	}
	negation   struct{ of node }
	comparison struct {
		op          string
		left, right operand
	}
	between struct{ of, low, high operand }
	oneOf   struct {
		of      operand
		members []operand
	}
	function struct {
		name string
		args []operand
	}
)

func (n junction) holds(item values.Item) bool {
	for _, b := range n.branches {
		if b.holds(item) == n.any {
			return n.any
		}
	}
	return !n.any
}

func (n negation) holds(item values.Item) bool { return !n.of.holds(item) }

func (n comparison) holds(item values.Item) bool {
	return compare(n.op, n.left.eval(item), n.right.eval(item))
}

// compare is false where either side is missing, except that <> is then true.
func compare(op string, left, right types.AttributeValue) bool {
	switch op {
	case "=":
		return values.EqualValues(left, right)
	case "<>":
		return !values.EqualValues(left, right)
	}
	order, ok := values.Compare(left, right)
	if !ok {
		return false
	}
	switch op {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	}
	return order >= 0
}

func (n between) holds(item values.Item) bool {
	av := n.of.eval(item)
	return compare(">=", av, n.low.eval(item)) && compare("<=", av, n.high.eval(item))
}

func (n oneOf) holds(item values.Item) bool {
	av := n.of.eval(item)
	return slices.ContainsFunc(n.members, func(m operand) bool { return values.EqualValues(av, m.eval(item)) })
}

func (n function) holds(item values.Item) bool {
	av := n.args[0].eval(item)
	switch n.name {
	case "attribute_exists":
		return av != nil
	case "attribute_not_exists":
		return av == nil
	}
	second := n.args[1].eval(item)
	switch n.name {
	case "attribute_type":
		return second != nil && values.TypeOf(av) == second.(*types.AttributeValueMemberS).Value
	case "begins_with":
		return beginsWith(av, second)
	}
	return contains(av, second)
}

func beginsWith(av, prefix types.AttributeValue) bool {
	switch v := av.(type) {
	case *types.AttributeValueMemberS:
		p, ok := prefix.(*types.AttributeValueMemberS)
		return ok && strings.HasPrefix(v.Value, p.Value)
	case *types.AttributeValueMemberB:
		p, ok := prefix.(*types.AttributeValueMemberB)
		return ok && bytes.HasPrefix(v.Value, p.Value)
	}
	return false
}

func contains(av, part types.AttributeValue) bool {
	switch v := av.(type) {
	case *types.AttributeValueMemberS:
		p, ok := part.(*types.AttributeValueMemberS)
		return ok && strings.Contains(v.Value, p.Value)
	case *types.AttributeValueMemberB:
		p, ok := part.(*types.AttributeValueMemberB)
		return ok && bytes.Contains(v.Value, p.Value)
	case *types.AttributeValueMemberSS:
		p, ok := part.(*types.AttributeValueMemberS)
		return ok && slices.Contains(v.Value, p.Value)
	case *types.AttributeValueMemberNS:
		p, ok := part.(*types.AttributeValueMemberN)
		return ok && slices.Contains(v.Value, p.Value)
	case *types.AttributeValueMemberBS:
		p, ok := part.(*types.AttributeValueMemberB)
		return ok && slices.ContainsFunc(v.Value, func(b []byte) bool { return bytes.Equal(b, p.Value) })
	case *types.AttributeValueMemberL:
		return slices.ContainsFunc(v.Value, func(e types.AttributeValue) bool { return values.EqualValues(e, part) })
	}
	return false
}

func (n junction) visit(f func(operand)) {
	for _, b := range n.branches {
		b.visit(f)
	}
}
func (n negation) visit(f func(operand))   { n.of.visit(f) }
func (n comparison) visit(f func(operand)) { visitAll(f, n.left, n.right) }
func (n between) visit(f func(operand))    { visitAll(f, n.of, n.low, n.high) }
func (n oneOf) visit(f func(operand))      { visitAll(f, append([]operand{n.of}, n.members...)...) }
func (n function) visit(f func(operand))   { visitAll(f, n.args...) }

func visitAll(f func(operand), operands ...operand) {
	for _, o := range operands {
		f(o)
	}
}
