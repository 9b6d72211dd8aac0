package expression

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/sim/dynamosim/values"
)

// KeyCondition is a parsed KeyConditionExpression: the partition key's value
// and a condition on the sort key, which holds for every item if there is none.
type KeyCondition struct {
	Partition types.AttributeValue
	Operands  []types.AttributeValue // what the sort key is compared with, for checks of its type
	sort      node
}

// HoldsSort evaluates the condition on the sort key.
func (k KeyCondition) HoldsSort(item values.Item) bool { return k.sort == nil || k.sort.holds(item) }

// ParseKeyCondition parses a condition on a table's keys; sortName is "" in a
// table that has no sort key.
func ParseKeyCondition(text, partitionName, sortName string, attrs *Attributes) (KeyCondition, error) {
	const kind = "KeyConditionExpression"
	var key KeyCondition
	c, err := ParseCondition(kind, text, attrs)
	if err != nil {
		return key, err
	}
	parts := []node{c.root}
	if j, ok := c.root.(junction); ok && !j.any {
		parts = j.branches
	}
	if len(parts) > 2 {
		return key, values.Invalid("Invalid %s: Conditions can be of length 1 or 2 only", kind)
	}
	for _, part := range parts {
		path, operands, err := keyPart(part)
		if err != nil {
			return key, err
		}
		switch name := path[0].Name; {
		case len(path) > 1:
			return key, values.Invalid("Invalid %s: a key is no document path: %v", kind, path)
		case name == partitionName:
			equals, ok := part.(comparison)
			if !ok || equals.op != "=" || key.Partition != nil {
				return key, values.Invalid("Query key condition not supported")
			}
			key.Partition = operands[0]
		case name == sortName && key.sort == nil:
			key.sort, key.Operands = part, operands
		default:
			return key, values.Invalid("Query condition missed key schema element: %s", partitionName)
		}
	}
	if key.Partition == nil {
		return key, values.Invalid("Query condition missed key schema element: %s", partitionName)
	}
	return key, nil
}

// keyPart returns the attribute and the constants of one condition, which has to be of a form that Query can seek.
func keyPart(part node) (Path, []types.AttributeValue, error) {
	var of operand
	var with []operand
	switch n := part.(type) {
	case comparison:
		of, with = n.left, []operand{n.right}
		if n.op == "<>" {
			of = nil
		}
	case between:
		of, with = n.of, []operand{n.low, n.high}
	case function:
		if n.name == "begins_with" {
			of, with = n.args[0], n.args[1:]
		}
	}
	path, ok := of.(Path)
	if !ok {
		return nil, nil, values.Invalid("Invalid KeyConditionExpression: Invalid operator or operand used in KeyConditionExpression")
	}
	constants := make([]types.AttributeValue, len(with))
	for i, o := range with {
		c, ok := o.(constant)
		if !ok {
			return nil, nil, values.Invalid("Invalid KeyConditionExpression: a key is compared with values only")
		}
		constants[i] = c.av
	}
	return path, constants, nil
}
